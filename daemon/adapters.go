package daemon

import "github.com/ccship/ccship/daemon/remote"

// servers shows rooms the destinations.
type servers struct{ *destinations }

// Protocol is what a server speaks; "" for one that nothing is sent to.
func (s servers) Protocol(dest string) string {
	if dr := s.get(dest); dr != nil {
		return dr.Health().Protocol
	}
	return ""
}

// Reader is a client of a server's reading API.
func (s servers) Reader(dest string) *remote.Client { return s.reader(dest) }
