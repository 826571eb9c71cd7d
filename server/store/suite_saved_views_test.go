package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// savedViews: what a user saves is that user's alone, has one place for each name, and goes with the user.
func (s suite) savedViews(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann, bob := addUser(t, st, "ann", server.Owner), addUser(t, st, "bob", server.Member)
	save := func(u server.User, name, page, query string) {
		t.Helper()
		v := server.SavedView{Name: name, Page: page, Query: query, Updated: start}
		kit.Must(t, errors.Join(v.Tidy(), st.SaveView(ctx, u.ID, v)))
	}
	has := func(u server.User, want ...string) {
		t.Helper()
		list, err := st.SavedViews(ctx, u.ID)
		var got []string
		for _, v := range list {
			got = append(got, v.Name+": "+v.Path())
			kit.Check(t, v.Updated.Equal(start), "%q was saved at %v", v.Name, v.Updated)
		}
		kit.Check(t, err == nil && strings.Join(got, "\n") == strings.Join(want, "\n"),
			"%s has\n%s, %v; want\n%s", u.Name, strings.Join(got, "\n"), err, strings.Join(want, "\n"))
	}
	save(ann, "  Broken \n shop ", "", "?view=failed&project=shop&after=5.6&model=")
	save(ann, "Timeouts", server.SearchPage, "q=deadline+exceeded&kind=error&kind=result")
	save(bob, "Timeouts", server.SessionsPage, "q=timeout")
	has(ann, "Broken shop: /?project=shop&view=failed", "Timeouts: /search?q=deadline+exceeded")
	has(bob, "Timeouts: /?q=timeout")
	save(ann, "Timeouts", server.SessionsPage, "tag=slow")
	has(ann, "Broken shop: /?project=shop&view=failed", "Timeouts: /?tag=slow")
	for i, name := range hostile {
		v := server.SavedView{Name: "h" + name + fmt.Sprint(i), Page: server.SessionsPage, Query: "q=" + name, Updated: start}
		kit.Err(t, name, nil)(st.SaveView(ctx, bob.ID, v))
		kit.Err(t, name+" is", nil)(st.RemoveView(ctx, bob.ID, v.Name))
	}
	kit.Err(t, "bob removes ann's", server.ErrNotFound)(nil, st.RemoveView(ctx, bob.ID, "Broken shop"))
	kit.Should(t, st.RemoveView(ctx, ann.ID, "Broken shop"))
	has(ann, "Timeouts: /?tag=slow")
	kit.Err(t, "a view of nobody", server.ErrNotFound)(nil, st.SaveView(ctx, 999_999, server.SavedView{Name: "x", Page: server.SessionsPage, Query: "q=x"}))
	for i := range server.MaxSavedViews - 1 {
		save(ann, fmt.Sprint("view ", i), server.SessionsPage, "q=x")
	}
	err := st.SaveView(ctx, ann.ID, server.SavedView{Name: "one more", Page: server.SessionsPage, Query: "q=x"})
	_, tooMany := errors.AsType[server.ViewError](err)
	kit.Check(t, tooMany, "one view too many: %v", err)
	save(ann, "view 7", server.SessionsPage, "q=in+its+place")
	has(bob, "Timeouts: /?q=timeout")
}

// TestViewsThatCannotBeKept: a view has a name, filters and a page.
func TestViewsThatCannotBeKept(t *testing.T) {
	for want, v := range map[string]server.SavedView{
		"needs a name":   {Name: " \n ", Query: "q=x"},
		"80 bytes":       {Name: strings.Repeat("x", 81), Query: "q=x"},
		"text":           {Name: "a\x00b", Query: "q=x"},
		"one filter":     {Name: "x", Query: "by=project&after=5&filters=1&q="},
		"needs words":    {Name: "x", Page: server.SearchPage, Query: "project=shop"},
		"or of a search": {Name: "x", Page: "usage", Query: "q=x"},
		"4096":           {Name: "x", Query: "q=" + strings.Repeat("x", 5000)},
		"address":        {Name: "x", Query: "q=%zz"},
	} {
		err := v.Tidy()
		kit.Check(t, err != nil && strings.Contains(err.Error(), want), "%+v: %v, want %q", v, err, want)
	}
	v := server.SavedView{Name: "x", Query: "b=2&a=1"}
	if err := v.Tidy(); err != nil || !v.Is(server.SessionsPage, map[string][]string{"a": {"1"}, "b": {"2"}, "after": {"9"}}) ||
		v.Is(server.SessionsPage, map[string][]string{"a": {"1"}}) || v.Is(server.SearchPage, map[string][]string{"a": {"1"}, "b": {"2"}}) {
		t.Errorf("%+v, %v is not told apart from others", v, err)
	}
}
