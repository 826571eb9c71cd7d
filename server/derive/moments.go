package derive

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// momentPlace identifies a moment in its stream.
type momentPlace struct {
	line int64
	part int
}

// happened adds a record of the newest view to the timeline.
func (h *extractor) happened(line int64, r *transcript.Record, events []session.Event) {
	if h.times == nil {
		return
	}
	for _, m := range h.times.Add(line, r, events) {
		if h.moments == nil {
			h.moments = map[momentPlace]session.Moment{}
		}
		h.moments[momentPlace{m.Line, m.Part}] = m
	}
}

// momentsOf are the moments of a step in their stored form, in order.
func (h *extractor) momentsOf() []server.Moment {
	var out []server.Moment
	for _, m := range slices.SortedFunc(maps.Values(h.moments), session.CompareMoments) {
		x := server.Moment{Line: m.Line, Part: int64(m.Part)}
		if !m.Gone {
			data, err := json.Marshal(m)
			if err != nil {
				continue // a time that JSON does not have: the record is damaged
			}
			x.Kind, x.Data = string(m.Kind), data
		}
		out = append(out, x)
	}
	return out
}

var errDerivedState = errors.New("not a state of this version")

// encodeState is the state of a stream's fold and of its timeline.
func encodeState(fold *session.Fold, times *session.TimelineBuilder) ([]byte, error) {
	f, err := fold.MarshalBinary()
	if err != nil {
		return nil, err
	}
	t, err := times.MarshalBinary()
	if err != nil {
		return nil, err
	}
	out := binary.AppendUvarint(make([]byte, 0, len(f)+len(t)+8), uint64(len(f)))
	return append(append(out, f...), t...), nil
}

// decodeState reads what encodeState wrote. After an error both are empty.
func decodeState(state []byte, fold *session.Fold, times *session.TimelineBuilder) error {
	n, size := binary.Uvarint(state)
	if size <= 0 || n > uint64(len(state)-size) {
		return errDerivedState
	}
	rest := state[size:]
	err := fold.UnmarshalBinary(rest[:n])
	if err == nil {
		err = times.UnmarshalBinary(rest[n:])
	}
	if err != nil {
		*fold, *times = session.Fold{}, session.TimelineBuilder{}
	}
	return err
}
