package thread

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/markup"
	"github.com/ccship/ccship/transcript"
)

// Item is what a page shows for a line, or for a run of skipped lines.
type Item struct {
	Line int64
	// Kind is "prompt", "message", "answer", "run", "result", "divider", "note", "error", "other", "gap" or "day".
	Kind  string
	Time  time.Time
	Who   string // heading; "" when the item before it has the same
	Model string
	Tags  []string
	Parts []Part
	// Secrets are the rules that found secrets in the line; nil if none did, or none were looked for.
	Secrets []string
	// Cont says that the item before it is of the same speaker.
	Cont bool
	// Left says that a rewind took this line out of the conversation.
	Left bool
	// Link is where all of the line is shown; Cut says that not all of it is here.
	Link string
	Cut  bool
	// Public says that what is shown there is all of it, but not the record as it is stored.
	Public bool
	// Mark is put behind the anchor of an item that is not the first of its line, or of another transcript's.
	Mark string
	// Page is the item's address when it stands on another transcript's page.
	Page string
	// Run is the items of a run, Summary what they did, Took how long.
	Run     []Item
	Summary string
	Took    time.Duration
}

// ID returns the item's anchor.
func (i Item) ID() string { return "L" + strconv.FormatInt(i.Line, 10) + i.Mark }

// Self returns where a link to the item leads.
func (i Item) Self() string {
	if i.Page != "" {
		return i.Page
	}
	return "#" + i.ID()
}

// Part is a piece of an item. Kind says which of the fields are set:
//
//	md      HTML is block elements
//	typed   HTML is text as typed
//	text    HTML is text for a <pre>
//	code    the same, coloured
//	think   HTML, folded
//	diff    Diff, Title is a path
//	todo    Todos
//	pairs   Pairs
//	image   Image
//	tool    Tool
//	link    Link, Title
//	fold    Title, Parts inside
//	note    Title, words of ours
type Part struct {
	Kind  string
	Title string
	HTML  template.HTML
	Diff  []markup.DiffLine
	Todos []Todo
	Pairs []Pair
	Image *Picture
	Tool  *Tool
	Parts []Part
	Link  string
	Error bool
	More  int64 // bytes, or of a diff lines, that are left out
}

type Todo struct {
	State string // "done", "now", "open"
	Text  string
}

// Pair is a member of an object.
type Pair struct {
	Name  string
	Value template.HTML
	More  int64 // bytes that are left out
}

// Picture is an image of a message.
type Picture struct {
	URL  template.URL
	Alt  string
	Kind string
	Size int64
}

// Tool is a call with what came of it.
type Tool struct {
	ID, Name, Summary string
	Folder, File      string // Summary, when it is a path
	moved             bool   // a result that its call shows
	State             string // "ok", "error", "running", "none": no result is known
	Word              string // State in words
	Open              bool   // shown unfolded
	Input, Result     []Part
	Agent             *AgentLink
	Overflow          *Overflow // where all of the result is, when not all of it is in the line
	ResultLine        int64     // -1: none
	Anchor            string    // of the result's line, which has no item of its own; "" if it has
	CallLine          int64     // with CallURL, of a result that stands apart from its call
	CallURL           string
	Took              time.Duration // without waiting for the user
	Waited            time.Duration // for the user, as far as is known
	MayWait           bool          // Took may contain more of it
	Note              string        // what the call says it is for
	TurnsURL          string        // the page of the turns that wrote its file; "": it wrote none

	call  call
	began time.Time
}

// AgentLink leads to what a call's agent did.
type AgentLink struct {
	URL, Inside string // page, and its beginning without a frame
	Name        string
	Facts       string
}

// call is what a result wants to know of its call.
type call struct {
	Line  int64
	Name  string
	Input []byte
	Cwd   string
	in    *input // Input, once it was read
}

// Lands says whether the address of a line leads to one of the items, or to the result of a call in them.
func Lands(items []Item, line int64) bool {
	id := Item{Line: line}.ID()
	for i := range items {
		if items[i].ID() == id {
			return true
		}
		for _, p := range items[i].Parts {
			if p.Tool != nil && p.Tool.Anchor == id {
				return true
			}
		}
	}
	return false
}

// Embed makes items of an agent's transcript ready to stand on another transcript's page: their anchors differ from
// that page's, and their links lead to the agent's page. base is the viewer's.
func Embed(items []Item, base string, s Stream) {
	for i := range items {
		items[i].Page = base + s.LinePath(items[i].Line)
		items[i].Mark += "-of-" + FileName(s.ID)
		Embed(items[i].Run, base, s)
		for _, p := range items[i].Parts {
			if p.Tool != nil {
				p.Tool.Anchor = "" // that of the page's own line of this number
			}
		}
	}
}

// maxImage is the largest image that is shown, in bytes of base64.
const maxImage = 24 << 20

// Images returns all pictures and documents of a line, those in tool results too, in their order.
func Images(l server.Line) []transcript.Block {
	var out []transcript.Block
	for _, rec := range Records(l) {
		if rec.Message != nil {
			out = appendImages(out, rec.Message.Blocks())
		}
	}
	return out
}

func appendImages(out, blocks []transcript.Block) []transcript.Block {
	for _, x := range blocks {
		if x.Kind == transcript.ImageBlock || x.Kind == transcript.DocumentBlock {
			out = append(out, x)
		}
		out = appendImages(out, x.Content)
	}
	return out
}

// numberOf returns the position of x, whose data points into the line the list is of; -1 when it is not there.
func numberOf(x transcript.Block, list []transcript.Block) int {
	for i, y := range list {
		if len(x.Data) > 0 && len(y.Data) > 0 && &x.Data[0] == &y.Data[0] {
			return i
		}
	}
	return -1
}

// Decoded returns an image of a line with its media type. server.ErrNotFound for one that is not there or not shown.
func Decoded(l server.Line, n int) (kind string, picture []byte, err error) {
	list := Images(l)
	if n < 0 || n >= len(list) {
		return "", nil, server.ErrNotFound
	}
	if kind = ImageType(list[n]); kind == "" {
		return "", nil, server.ErrNotFound
	}
	if picture, err = DecodeImage(list[n].Data); err != nil {
		return "", nil, server.ErrNotFound
	}
	return kind, picture, nil
}

// ImageType returns the media type of an image that browsers show without harm; "" for any other. It is found out from
// the bytes: what the record says is only a claim. SVG, which can hold scripts, is none of them.
func ImageType(x transcript.Block) string {
	if x.Kind != transcript.ImageBlock || len(x.Data) > maxImage {
		return ""
	}
	head, err := DecodeImage(x.Data[:min(len(x.Data), 1024)&^3])
	if err != nil {
		return ""
	}
	return ImageKind(head)
}

// ImageKind returns the media type of bytes that begin an image which browsers show without harm; "" for anything else.
func ImageKind(head []byte) string {
	switch kind := http.DetectContentType(head); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return kind
	}
	return ""
}

// DecodeImage reads base64 as it stands in a JSON string, where a slash may be escaped.
func DecodeImage(data []byte) ([]byte, error) {
	if bytes.IndexByte(data, '\\') >= 0 {
		data = bytes.ReplaceAll(data, []byte{'\\'}, nil)
		data = data[:len(data)&^3]
	}
	out := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
	n, err := base64.StdEncoding.Decode(out, data)
	if err != nil {
		return nil, fmt.Errorf("read image: %w", err)
	}
	return out[:n], nil
}

// svgSource returns an SVG image's text.
func svgSource(x transcript.Block) (string, bool) {
	if !strings.Contains(strings.ToLower(x.MediaType), "svg") || len(x.Data) > maxImage {
		return "", false
	}
	b, err := DecodeImage(x.Data)
	if err != nil {
		return "", false
	}
	return string(b), true
}
