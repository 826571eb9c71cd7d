package remote

import (
	"io"
	"net/http"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestIndexing(t *testing.T) {
	page := "# HELP ccship_server_derive_lag_streams x\nccship_server_derive_lag_streams 3\nccship_server_store_streams 12\n"
	c := client(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) })
	left, all, err := Indexing(t.Context(), c)
	kit.Check(t, left == 3 && all == 12 && err == nil, "%d of %d, %v", left, all, err)
	page = "<html>"
	_, _, err = Indexing(t.Context(), c)
	kit.Check(t, err != nil, "a page without the number is an answer")
}
