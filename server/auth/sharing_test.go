package auth

import (
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// TestAnswer: an answer ends with its reader's rights. While a database cannot say, it goes on, for a minute.
func TestAnswer(t *testing.T) {
	away, role := errors.New("the database is away"), func(r server.Role) server.User { return server.User{Role: r} }
	for _, c := range []struct {
		name string
		who  server.User
		err  error
		ends time.Duration // 0: never
	}{
		{"as before", role(server.Member), nil, 0},
		{"more rights", role(server.Owner), nil, 0},
		{"fewer rights", role(server.Viewer), nil, time.Second},
		{"no rights", server.User{}, ErrUnauthorized, time.Second},
		{"nobody can say", server.User{}, away, unsure},
		{"right no more, and guessed since", server.User{}, &TooManyError{time.Second}, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			looks := 0
			a := &Answer{ResponseWriter: httptest.NewRecorder(), User: role(server.Member), Every: time.Second,
				Who: func() (server.User, error) { looks++; return c.who, c.err }}
			var ended time.Duration
			began := time.Now()
			for range 1000 {
				if _, err := a.Write([]byte("x")); err != nil {
					ended = time.Since(began)
					break
				}
				kit.Pass(100 * time.Millisecond)
			}
			kit.Equal(t, c.name+": ends after", ended, c.ends)
			kit.Check(t, looks <= 100, "%s: %d looks in 100 s", c.name, looks)
		})
	}
}
