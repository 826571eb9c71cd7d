package corpus

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// Shape is what matters to a store about lines: how long they are, what they are, and how far they can be compressed
// and searched.
type Shape struct {
	Lines, Bytes   int64
	P50, P90, P99  int                // bytes of a line
	Long           float64            // share of lines above 64 KiB
	Share          map[string]float64 // of the bytes, by kind of record
	Text           float64            // share of the bytes that people can search
	DocGrams       float64            // different three-character pieces in 4 KiB of text
	GramsAtMB      map[int]int        // different ones in so many MB of text
	Once           float64            // share of all pieces that are in one document only
	PackedToRawPct float64            // blocks of 128 KiB, compressed
}

// gauge measures lines as they come.
type gauge struct {
	Shape
	lengths []int
	bytes   map[string]int64
	text    int64
	grams   map[[3]rune]int32 // how many documents have it
	doc     map[[3]rune]struct{}
	docText int
	docs    int64
	docSum  int64
	block   []byte
	packed  int64
	pack    func(dst, raw []byte) []byte
}

// Measure measures the first limit bytes of sessions; pack compresses a block.
func Measure(all []Session, src *Source, limit int64, pack func(dst, raw []byte) []byte) Shape {
	g := &gauge{bytes: map[string]int64{}, grams: map[[3]rune]int32{}, doc: map[[3]rune]struct{}{}, pack: pack}
	g.GramsAtMB = map[int]int{}
	for _, s := range all {
		if g.Bytes >= limit {
			break
		}
		for _, chunk := range s.Chunks(src) {
			for _, line := range chunk.Lines {
				g.line(line)
			}
		}
		g.endBlock()
		g.endDoc()
	}
	return g.finish()
}

func (g *gauge) line(line string) {
	n := int64(len(line)) + 1
	g.Lines, g.Bytes = g.Lines+1, g.Bytes+n
	g.lengths = append(g.lengths, int(n))
	if g.block = append(append(g.block, line...), '\n'); len(g.block) >= 128<<10 {
		g.endBlock()
	}
	var record struct {
		Type       string `json:"type"`
		Attachment struct {
			Type string `json:"type"`
		} `json:"attachment"`
		Message struct {
			Content any `json:"content"`
		} `json:"message"`
	}
	if json.Unmarshal([]byte(line), &record) != nil {
		g.bytes["other"] += n
		return
	}
	kind := record.Type
	if list, ok := record.Message.Content.([]any); ok && len(list) > 0 {
		if block, ok := list[0].(map[string]any); ok {
			name, _ := block["type"].(string)
			kind += "/" + name
		}
	}
	g.bytes[kind] += n
	g.find(record.Message.Content)
}

// find reads the texts of a message: those a person can search.
func (g *gauge) find(content any) {
	switch c := content.(type) {
	case string:
		g.add(c)
	case []any:
		for _, part := range c {
			g.find(part)
		}
	case map[string]any:
		for name, value := range c {
			if name != "signature" && name != "source" && name != "id" && name != "tool_use_id" && name != "type" {
				g.find(value)
			}
		}
	}
}

func (g *gauge) add(text string) {
	before := g.text >> 20
	g.text += int64(len(text))
	g.docText += len(text)
	var last [3]rune
	count := 0
	for _, r := range strings.ToLower(text) {
		last = [3]rune{last[1], last[2], r}
		if count++; count >= 3 && r != utf8.RuneError {
			g.doc[last] = struct{}{}
		}
	}
	if g.docText >= 4<<10 {
		g.endDoc()
	}
	if mb := g.text >> 20; mb != before && mb&(mb-1) == 0 {
		g.GramsAtMB[int(mb)] = len(g.grams)
	}
}

func (g *gauge) endDoc() {
	if g.docText == 0 {
		return
	}
	if g.docText >= 4<<10 && g.docText < 8<<10 { // one long text is one document; it says nothing about usual ones
		g.docs, g.docSum = g.docs+1, g.docSum+int64(len(g.doc))
	}
	for gram := range g.doc {
		g.grams[gram]++
	}
	clear(g.doc)
	g.docText = 0
}

func (g *gauge) endBlock() {
	if len(g.block) > 0 {
		g.packed += int64(len(g.pack(nil, g.block)))
		g.block = g.block[:0]
	}
}

func (g *gauge) finish() Shape {
	if len(g.lengths) == 0 {
		return g.Shape
	}
	slices.Sort(g.lengths)
	at := func(q float64) int { return g.lengths[int(q*float64(len(g.lengths)-1))] }
	g.P50, g.P90, g.P99 = at(.5), at(.9), at(.99)
	long, _ := slices.BinarySearch(g.lengths, 64<<10+1)
	g.Long = float64(len(g.lengths)-long) / float64(len(g.lengths))
	g.Share = map[string]float64{}
	for kind, n := range g.bytes {
		g.Share[kind] = float64(n) / float64(g.Bytes)
	}
	once := 0
	for _, n := range g.grams {
		if n == 1 {
			once++
		}
	}
	g.Text = float64(g.text) / float64(g.Bytes)
	g.DocGrams = float64(g.docSum) / float64(max(g.docs, 1))
	g.Once = float64(once) / float64(max(len(g.grams), 1))
	g.PackedToRawPct = 100 * float64(g.packed) / float64(g.Bytes)
	return g.Shape
}
