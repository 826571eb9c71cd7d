package derive

import (
	"encoding"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/provenance"
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

// momentsOf returns the moments of a step in their stored form, in order.
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

// encodeState returns the state of a stream's fold, of its timeline, and of what reads its edits.
func encodeState(parts ...encoding.BinaryMarshaler) (out []byte, err error) {
	for _, p := range parts {
		b, err := p.MarshalBinary()
		if err != nil {
			return nil, err
		}
		out = append(binary.AppendUvarint(out, uint64(len(b))), b...)
	}
	return out, nil
}

// decodeState reads what encodeState wrote. After an error all are empty.
func decodeState(state []byte, fold *session.Fold, times *session.TimelineBuilder, wrote *provenance.Builder) error {
	for _, p := range []encoding.BinaryUnmarshaler{fold, times, wrote} {
		n, size := binary.Uvarint(state)
		err := errDerivedState
		if size > 0 && n <= uint64(len(state)-size) {
			err = p.UnmarshalBinary(state[size:][:n])
			state = state[size:][n:]
		}
		if err != nil {
			*fold, *times, *wrote = session.Fold{}, session.TimelineBuilder{}, provenance.Builder{}
			return err
		}
	}
	return nil
}
