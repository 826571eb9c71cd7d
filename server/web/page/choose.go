package page

import (
	"context"
	"net/http"
	"strconv"

	"github.com/ccship/ccship/server"
)

// Users lists the users whose sessions there are, for their names.
type Users interface {
	Users(ctx context.Context) ([]server.User, error)
}

// choosePage asks whose session an address means.
type choosePage struct {
	Layout
	Session string
	Choices []choice
}

type choice struct {
	server.Address
	User, URL string
}

// choose shows the page of sessions of several users that have the id of the address. Its links are the same address
// with the user in it; of a form, the session's page.
func (s *Site) choose(w http.ResponseWriter, r *http.Request, no *server.AmbiguousError) {
	users, err := s.Users.Users(r.Context())
	if err != nil {
		s.Answer(w, r, err)
		return
	}
	p := choosePage{Layout: s.Layout(r, reader(r), "Whose session?", ""), Session: no.Session}
	for _, x := range no.Choices {
		c := choice{Address: x}
		for _, u := range users {
			if u.ID == x.Owner {
				c.User = u.Name
			}
		}
		to := *r.URL
		if id := r.PathValue("id"); id != "" && r.Method != http.MethodGet {
			to.Path, to.RawPath = "/", ""
			to = *to.JoinPath("sessions", id)
		}
		q := to.Query()
		q.Set("owner", strconv.FormatInt(x.Owner, 10))
		to.RawQuery = q.Encode()
		c.URL = s.Base + to.String()
		p.Choices = append(p.Choices, c)
	}
	s.Render(w, http.StatusConflict, "choose.html", p)
}
