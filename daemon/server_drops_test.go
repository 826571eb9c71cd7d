package daemon

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/ccship/ccship/daemon/remote"
)

// drops answers which rewrites took lines out of a session.
func (s *memServer) drops(w http.ResponseWriter, session string) {
	list := []remote.Drop{}
	numbers := slices.Sorted(maps.Keys(s.streams[session]))
	for i := 1; i < len(numbers) && s.lagging == 0; i++ {
		from := s.streams[session][numbers[i]].start
		before, _ := s.view(session, numbers[i-1])
		now, _ := s.view(session, numbers[i])
		there := map[string]bool{}
		for _, line := range now[min(from, int64(len(now))):] {
			there[string(line)] = true
		}
		lost := slices.DeleteFunc(before[from:], func(line []byte) bool { return there[string(line)] })
		if len(lost) > 0 {
			list = append(list, remote.Drop{
				Session: remote.Session{SessionID: session, Machine: s.machine}, Epoch: s.epoch,
				Generation: int64(numbers[i]), Lines: int64(len(lost)),
			})
		}
	}
	json.NewEncoder(w).Encode(map[string]any{"drops": list, "lagging": s.lagging > 0})
	s.lagging = max(0, s.lagging-1)
}
