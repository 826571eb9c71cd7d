package corpus

import (
	"encoding/json"
	"slices"
)

// Shape is what matters to a store about lines: how long they are, what they are, and how far they can be compressed.
type Shape struct {
	P50, P90    int                // bytes of a line
	Long        float64            // share of lines above 64 KiB
	Share       map[string]float64 // of the bytes, by kind of record
	PackedToRaw float64            // blocks of 128 KiB, compressed
}

// Measure measures sessions; pack compresses a block.
func Measure(all []Session, src *Source, pack func(dst, raw []byte) []byte) Shape {
	var lengths []int
	var total, packed int
	var block []byte
	s := Shape{Share: map[string]float64{}}
	for _, session := range all {
		for _, chunk := range session.Chunks(src) {
			for _, line := range chunk.Lines {
				n := len(line) + 1
				lengths, total = append(lengths, n), total+n
				s.Share[kind(line)] += float64(n)
				if block = append(append(block, line...), '\n'); len(block) >= 128<<10 {
					packed, block = packed+len(pack(nil, block)), block[:0]
				}
			}
		}
	}
	packed += len(pack(nil, block))
	slices.Sort(lengths)
	at := func(q float64) int { return lengths[int(q*float64(len(lengths)-1))] }
	s.P50, s.P90 = at(.5), at(.9)
	long, _ := slices.BinarySearch(lengths, 64<<10+1)
	s.Long = float64(len(lengths)-long) / float64(len(lengths))
	for kind := range s.Share {
		s.Share[kind] /= float64(total)
	}
	s.PackedToRaw = float64(packed) / float64(total)
	return s
}

// kind is a line's type, and that of its first block.
func kind(line string) string {
	var record struct {
		Type    string
		Message struct{ Content any }
	}
	if json.Unmarshal([]byte(line), &record) != nil {
		return "other"
	}
	if list, ok := record.Message.Content.([]any); ok && len(list) > 0 {
		if block, ok := list[0].(map[string]any); ok {
			name, _ := block["type"].(string)
			return record.Type + "/" + name
		}
	}
	return record.Type
}
