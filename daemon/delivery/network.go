package delivery

import (
	"net"
	"strings"

	"github.com/ccship/ccship/outbox"
)

// addresses names this machine's addresses: another network has others.
func addresses() string {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return "" // as long as it cannot be asked, nothing has changed
	}
	words := make([]string, len(all))
	for i, a := range all {
		words[i] = a.String()
	}
	return strings.Join(words, " ")
}

// RetryOnNewNetwork tries servers that cannot be reached again when this machine's addresses have changed since the
// last call. It looks only while there is such a server.
func (s *Servers) RetryOnNewNetwork() {
	if !s.anyUnreachable() {
		s.network = ""
		return
	}
	was := s.network
	if s.network = s.addresses(); was != "" && s.network != was {
		s.log.Info("the network has changed: trying again at once")
		s.Retry(false)
	}
}

func (s *Servers) anyUnreachable() bool {
	for _, drainer := range s.drainers() {
		if h := drainer.Health(); h.State == outbox.StateRetrying && h.Kind == outbox.KindUnreachable {
			return true
		}
	}
	return false
}
