package remote

import (
	"io"
	"net/http"
	"testing"
)

func TestIndexing(t *testing.T) {
	page := "# HELP ccship_server_derive_lag_streams x\nccship_server_derive_lag_streams 3\nccship_server_store_streams 12\n"
	c := client(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) })
	if left, all, err := Indexing(t.Context(), c); left != 3 || all != 12 || err != nil {
		t.Errorf("%d of %d, %v", left, all, err)
	}
	page = "<html>"
	if _, _, err := Indexing(t.Context(), c); err == nil {
		t.Error("a page without the number is an answer")
	}
}
