package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/ccship/ccship/server/wire"
)

// readBody reads a small request document of at most limit bytes. It refuses unknown members: they may matter.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, to any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return wire.Refuse(http.StatusRequestEntityTooLarge, "too_large",
			fmt.Sprintf("the request is larger than %d bytes", limit))
	}
	if err != nil {
		return wire.BadRequest("bad_json", fmt.Sprintf("the body is not what this call takes: %v", err))
	}
	return nil
}
