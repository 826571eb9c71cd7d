package thread

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/ccship/ccship/server"
)

// Stream names what a page shows: a session of a machine, and where that is not the newest, an epoch and a generation.
type Stream struct {
	ID         string
	User       int64   // whose it is; 0: the reader's own, else the only one
	Machine    *string // nil: the one heard last
	Epoch      string
	Generation int64  // -1: the newest
	Short      string // the beginning of a session's id that names it to the reader, without machine and user; or ""
}

// UserParam is the parameter of an address that has a Stream's User.
const UserParam = "owner"

func StreamOf(x server.Session) Stream {
	return Stream{ID: x.SessionID, User: x.Owner, Machine: &x.Machine, Generation: -1, Short: x.Short}
}

// Pin lets s name no other stream than that of x. A short name stays.
func (s *Stream) Pin(x server.Session) { s.ID, s.User, s.Machine = x.SessionID, x.Owner, &x.Machine }

// Full is s without its short name: what names one stream whatever is stored later.
func (s Stream) Full() Stream {
	s.Short = ""
	return s
}

// Agent returns an agent of the session of s, or of the one that the agent of s belongs to.
func (s Stream) Agent(id string) Stream {
	of := s.Owner()
	of.ID += "/agent-" + id
	return of
}

func (s Stream) Ref() server.Ref {
	return server.Ref{SessionID: s.ID, Prefix: true, Owner: s.User, Machine: s.Machine, Epoch: s.Epoch}
}

// Path returns the address, below the base, of the session's page or of what lies below that. more is names and values
// of its query; "" values are left out. The id is one path element, whatever is in it.
func (s Stream) Path(below string, more ...string) string {
	q := url.Values{}
	id := s.ID
	if s.Short != "" {
		_, agent, isAgent := strings.Cut(s.ID, "/")
		if id = s.Short; isAgent {
			id += "/" + agent
		}
		s.User, s.Machine = 0, nil
	}
	if s.User != 0 {
		q.Set(UserParam, strconv.FormatInt(s.User, 10))
	}
	if s.Machine != nil {
		q.Set("machine", *s.Machine)
	}
	if s.Epoch != "" {
		q.Set("epoch", s.Epoch)
	}
	if s.Generation >= 0 {
		q.Set("generation", strconv.FormatInt(s.Generation, 10))
	}
	for i := 0; i+1 < len(more); i += 2 {
		if more[i+1] != "" {
			q.Set(more[i], more[i+1])
		}
	}
	p := "/sessions/" + url.PathEscape(id) + below
	if len(q) > 0 {
		p += "?" + q.Encode()
	}
	return p
}

// LinePath returns the permalink of a line.
func (s Stream) LinePath(n int64) string { return s.Path("/L/" + strconv.FormatInt(n, 10)) }

// DocumentPath returns the page of a linked document, below that of its session. more is as in path.
func (s Stream) DocumentPath(name string, more ...string) string {
	return s.Path("/document", append([]string{"path", name}, more...)...)
}

// Owner returns the stream that a session's files belong to: an agent's are its session's.
func (s Stream) Owner() Stream {
	id, _, _ := strings.Cut(s.ID, "/")
	return Stream{ID: id, User: s.User, Machine: s.Machine, Generation: -1, Short: s.Short}
}

// FileName returns a session's id as far as it can stand in a file's name.
func FileName(id string) string {
	out := []byte(id)
	for i, c := range out {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			out[i] = '-'
		}
	}
	return string(out[:min(len(out), 80)])
}
