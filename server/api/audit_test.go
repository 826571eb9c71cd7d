package api_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/ccship/ccship/server/audit"
)

// audit is what is found, a line each.
func (r *rig) audit() (audit.Progress, string) {
	r.t.Helper()
	var found []string
	a, err := audit.Run(r.t.Context(), r.store, func(f audit.Finding) {
		found = append(found, f.SessionID+": "+f.Problem)
	}, func(audit.Progress) {})
	must(r.t, err)
	return a, strings.Join(found, "\n")
}

// whole is a request for a whole file, whose length is true.
func whole(session string, gen, rewound int64, lines ...string) string {
	p := piece{gen: gen, rewound: rewound, first: rewound, lines: lines[rewound:]}
	size := 0
	for _, l := range lines {
		size += len(l) + 1
	}
	body := p.body(session)
	head, _, _ := strings.Cut(body, `"to":{"offset":`)
	return head + `"to":{"offset":` + strconv.Itoa(size) + `,"line":` + strconv.Itoa(len(lines)) + `},"eof_newline":true,"edges":[]}}`
}

func TestAudit(t *testing.T) {
	r := newRig(t)
	r.post(whole("s", 0, 0, `{"a":0}`, `{"a":1}`, `{"a":2}`))
	r.post(whole("s", 1, 1, `{"a":0}`, `{"b":1}`))
	r.post(bare)
	a, found := r.audit()
	if found != "" || a.Streams != 2 || a.Generations != 3 {
		t.Fatalf("%+v, found %q", a, found)
	}
	tests := []struct{ name, sql, undo, want string }{
		{"an object is none", `UPDATE lines SET raw = CAST('{"a":' AS BLOB) WHERE line = 2`,
			`UPDATE lines SET raw = CAST('{"a":2}' AS BLOB) WHERE line = 2`, "line 3 is no JSON object any more"},
		{"bytes are missing", `UPDATE lines SET raw = CAST('{}' AS BLOB) WHERE line = 2`,
			`UPDATE lines SET raw = CAST('{"a":2}' AS BLOB) WHERE line = 2`, "its 3 lines are 19 bytes; the file had 24"},
	}
	for _, test := range tests {
		for _, sql := range []string{test.sql, test.undo} {
			if _, err := r.db().Exec(sql); err != nil {
				t.Fatal(err)
			}
			if sql == test.undo {
				break
			}
			if _, found := r.audit(); !strings.Contains(found, test.want) || !strings.HasPrefix(found, "s: ") {
				t.Errorf("%s: found %q", test.name, found)
			}
		}
	}
	if _, found := r.audit(); found != "" {
		t.Errorf("put right again: found %q", found)
	}
}
