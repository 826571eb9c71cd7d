package page

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/ccship/ccship/server"
)

// Users names the users whose sessions there are.
type Users interface {
	UserNames(ctx context.Context, ids []int64) (map[int64]string, error)
}

// choosePage asks whose session an address means.
type choosePage struct {
	Layout
	Session string
	Users   bool // the choices are of several users; else their ids begin alike
	Choices []choice
}

type choice struct {
	server.Address
	User, URL string
}

// choose shows the page of sessions of several users that have the id of the address. Its links are the same address
// with the user in it; of a form, the session's page.
func (s *Site) choose(w http.ResponseWriter, r *http.Request, no *server.AmbiguousError) {
	var owners []int64
	for _, x := range no.Choices {
		owners = append(owners, x.Owner)
	}
	names, err := s.Users.UserNames(r.Context(), owners)
	if err != nil {
		s.Answer(w, r, err)
		return
	}
	p := choosePage{Layout: s.Layout(r, reader(r), "Whose session?", ""), Session: no.Session}
	p.Users = true
	for _, x := range no.Choices {
		c := choice{Address: x, User: names[x.Owner]}
		to := *r.URL
		if id := r.PathValue("id"); id != "" && r.Method != http.MethodGet {
			to.Path, to.RawPath = "/", ""
			to = *to.JoinPath("sessions", id)
		}
		q := to.Query()
		if x.SessionID != no.Session && r.PathValue("id") != "" { // one of several whose ids begin so
			p.Users, p.Title = false, "Which session?"
			to.Path, to.RawPath = "/sessions/"+x.SessionID, ""
			q = url.Values{"machine": {x.Machine}}
		}
		q.Set("owner", strconv.FormatInt(x.Owner, 10))
		to.RawQuery = q.Encode()
		c.URL = s.Base + to.String()
		p.Choices = append(p.Choices, c)
	}
	s.Render(w, http.StatusConflict, "choose.html", p)
}
