package route

import (
	"slices"
	"strings"
	"sync"

	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// Stream is the stream of a transcript.
type Stream struct {
	ID   tail.FileID
	Name string
}

// streams are the names of all streams. It is safe for concurrent use.
type streams struct {
	mu  sync.Mutex
	ids map[string]tail.FileID // by name; guarded by mu
}

func (s *streams) add(name string, id tail.FileID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = map[string]tail.FileID{}
	}
	s.ids[name] = id
}

func (s *streams) id(name string) (tail.FileID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.ids[name]
	return id, ok
}

// Remembered are the transcripts that are remembered; *tail.Tailer is one.
type Remembered interface {
	File(id tail.FileID) (tail.Tracked, bool)
}

// claim gives a file its stream name. Two remembered files never share a name: the second of a kind gets "~2" and so
// on, permanently. The name of one that was forgotten is free.
func (r *Router) claim(file tail.File, parent string) string {
	s := &r.streams
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = map[string]tail.FileID{}
	}
	for n := max(file.Copy, 1); ; n++ {
		name := streamName(file, r.machine, parent, n)
		owner, taken := s.ids[name]
		if taken && r.Remembered != nil {
			_, taken = r.Remembered.File(owner)
		}
		if !taken || owner == file.ID {
			s.ids[name] = file.ID
			return name
		}
	}
}

// find returns the stream with a name, or else those whose names begin with it, in order. It ignores prompt histories.
func (s *streams) find(name string) []Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, ok := s.ids[name]; ok {
		return []Stream{{id, name}}
	}
	var found []Stream
	for stream, id := range s.ids {
		if strings.HasPrefix(stream, name) && !strings.HasPrefix(stream, "history-") {
			found = append(found, Stream{id, stream})
		}
	}
	slices.SortFunc(found, func(a, b Stream) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// streamName returns the name of a file's stream when it is the nth file with its name.
func streamName(file tail.File, machine, parent string, n int) string {
	if file.Kind == tail.History {
		return transcript.HistoryName(machine, file.Root)
	}
	return transcript.StreamName(file.Name, parent, n)
}
