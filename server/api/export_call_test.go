package api_test

import (
	"testing"
)

// TestExport: jsonl is the lines, json the entries, and no session's name breaks the header.
func TestExport(t *testing.T) {
	r := newRig(t)
	const name = `a"b/ü;x`
	r.post(encode(t, name, "{\"a\":1}\n\n not json\n"))
	path := "/api/sessions/a%22b%2F%C3%BC;x/export"
	a := r.get(path)
	if string(a.body) != "{\"a\":1}\n\n not json\n" || a.header.Get("Content-Disposition") != `attachment; filename="a_b___x.jsonl"` {
		t.Errorf("%q %v", a.body, a.header)
	}
	doc := decode[struct {
		Entries []struct{ Kind string }
	}](t, r.get(path+"?format=json"))
	if len(doc.Entries) != 3 || doc.Entries[0].Kind != "object" || doc.Entries[2].Kind != "opaque" {
		t.Errorf("%+v", doc)
	}
	for format, want := range map[string]int{"md": 404, "html": 404, "exe": 400} {
		if a := r.get(path + "?format=" + format); a.status != want {
			t.Errorf("%s: %d", format, a.status)
		}
	}
}
