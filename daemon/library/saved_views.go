package library

import (
	"context"
	"net/url"
	"path/filepath"

	"github.com/ccship/ccship/daemon/control"
)

// PageQuery is what a filter is in the address of the viewer's page, for a view to be saved. since is a day, or 7d.
func (l *Library) PageQuery(ctx context.Context, f Filter, since string) (url.Values, error) {
	if filepath.IsAbs(f.Project) {
		return nil, control.Usage("a saved view names a project by its name", "not by its folder "+f.Project)
	}
	views := []string{}
	for _, x := range []struct {
		is   bool
		name string
	}{{f.Failed, "failed"}, {f.Starred, "starred"}, {f.Most == "cost", "costly"}, {f.Most == "tokens", "tokens"},
		{f.Most == "time", "long"}} {
		if x.is {
			views = append(views, x.name)
		}
	}
	if len(views) > 1 {
		return nil, control.Usage("a view has one of --failed, --starred and --most", "")
	}
	q := url.Values{"view": views}
	for name, value := range map[string]string{"project": f.Project, "q": f.Text, "tag": f.Tag, "since": since} {
		if value != "" {
			q.Set(name, value)
		}
	}
	machine, err := l.machine(ctx, f.Machine)
	if machine != nil {
		q.Set("machine", *machine)
	}
	return q, err
}
