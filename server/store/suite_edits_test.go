package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/provenance"
)

// edits: those of a stretch replace those stored for its lines; only who may read a session learns of its edits, and
// only of lines that are asked for, and how many others there are; they go with the session.
func (s suite) edits(t *testing.T) {
	st := s.open(t)
	lines := make([]server.Line, 20)
	for i := range lines {
		lines[i] = object(int64(i), "{}")
	}
	b := batch("s", lines...)
	b.Owner = 5
	put(t, st, b)
	task := lease(t, st)["s"]
	end := place(t, st, task)
	step := func(to int64, edits ...provenance.Edit) {
		t.Helper()
		d := server.Derivation{Task: task, Position: end, Live: true, Done: to == 20, Edits: edits}
		d.Position.Line = to
		kit.Must(t, st.SaveDerived(t.Context(), &d))
		task.Position = d.Position
	}
	at := time.Date(2026, 3, 12, 9, 0, 0, 0, time.UTC)
	var asked []provenance.Sum
	edit := func(line int64, path string, texts ...string) provenance.Edit {
		e := provenance.Edit{Line: line, Prompt: line - 1, At: at.Add(time.Duration(line) * time.Minute), Path: path}
		for _, text := range texts {
			sum, _, _ := provenance.SumOf(text)
			e.Sums = append(e.Sums, sum)
			if !strings.Contains(text, "unasked") {
				asked = append(asked, sum)
			}
		}
		return e
	}
	expect := func(scope server.Scope, name string, to int64, want string) {
		t.Helper()
		list := kit.Try(st.EditsOf(t.Context(), scope, server.EditQuery{Name: name, To: at.Add(time.Duration(to) * time.Minute),
			Limit: 100, Sums: asked})).Must(t)
		var got []string
		for _, e := range list {
			known := 0
			for _, sum := range e.Sums {
				if slices.Contains(asked, sum) {
					known++
				}
			}
			got = append(got, fmt.Sprintf("%s:%d(%d) %s %d/%d", e.SessionID, e.Line, e.Prompt, e.Path, known, len(e.Sums)+e.Others))
		}
		kit.Equal(t, name, strings.Join(got, ", "), want)
	}
	all, own, other := server.Scope{All: true}, server.Scope{User: task.Owner}, server.Scope{User: task.Owner + 7}
	step(10, edit(3, "/home/kim/shop/Cart.go", "one line of text", "an unasked line"), edit(3, "/home/kim/shop/b.go", "of another file"))
	step(20, edit(9, "/home/kim/shop/cart.go", "called before, done now"), edit(12, `C:/shop/cart.go`, "on another disk"))
	expect(all, "cart.go", 60, "s:12(11) C:/shop/cart.go 1/1, s:9(8) /home/kim/shop/cart.go 1/1, s:3(2) /home/kim/shop/Cart.go 1/2")
	expect(own, "CART.go", 9, "s:9(8) /home/kim/shop/cart.go 1/1, s:3(2) /home/kim/shop/Cart.go 1/2")
	expect(other, "cart.go", 60, "")
	expect(server.Scope{}, "cart.go", 60, "")
	expect(all, "c.go", 60, "")

	kit.Must(t, st.ResetDerived(t.Context()))
	expect(all, "cart.go", 60, "")
	task = lease(t, st)["s"]
	step(20, edit(12, "/home/kim/shop/cart.go", "derived again"))
	expect(all, "cart.go", 60, "s:12(11) /home/kim/shop/cart.go 1/1")
	kit.Try(st.Forget(t.Context(), server.Scope{All: true}, "s", 0, start)).Must(t)
	expect(all, "cart.go", 60, "")
}
