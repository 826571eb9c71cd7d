package thread

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/transcript"
)

// user shows a user record: a prompt, a tool's results, a command, or what the program said in the user's name.
func (b *Builder) user(rec transcript.Record, it Item) {
	if rec.Message == nil {
		b.noise(rec, it)
		return
	}
	b.results(rec, it)
	b.replies(rec, it)
	if rec.CompactSummary {
		b.put(it, "divider", "summary", Part{Kind: "fold", Title: "Summary of the conversation so far",
			Parts: []Part{b.markdown(rec.Message.Text())}})
		return
	}
	said := rec.Speech()
	if said.Speaker == transcript.NoSpeaker || rec.Sidechain && rec.ParentUUID == "" && !rec.Meta {
		b.program(rec, it)
		return
	}
	b.said(rec, it, said)
}

// put pushes an item of a kind with its parts.
func (b *Builder) put(it Item, kind, who string, parts ...Part) {
	it.Kind, it.Who, it.Parts = kind, who, parts
	b.push(it)
}

// replies shows what the person said in the results of tools.
func (b *Builder) replies(rec transcript.Record, it Item) {
	for _, reply := range rec.Replies() {
		if it.Tags = []string{"reply"}; reply.Rejected {
			it.Tags = []string{"with a rejection"}
		}
		b.put(it, "prompt", "You", b.typed(reply.Text)...)
	}
}

// said shows what a speaker said. What came from the queue may have several records.
func (b *Builder) said(rec transcript.Record, it Item, said transcript.Speech) {
	if b.event == nil {
		b.noise(rec, it)
		return
	}
	it.Kind, it.Who = "prompt", said.Label()
	text := said.Text
	if !said.Speaker.Human() {
		it.Kind, it.Parts = "message", []Part{b.markdown(text)}
		if rec.Queued != "" {
			it.Tags = append(it.Tags, "queued")
		}
		b.push(it)
		return
	}
	if rec.FromPlan {
		it.Tags = append(it.Tags, "from a plan")
	}
	if rec.Queued != "" || rec.PromptSource == "queued" {
		it.Tags = append(it.Tags, "queued")
	}
	if name, args, ok := rec.Command(); ok {
		it.Parts = append(it.Parts, Part{Kind: "command", Title: words("/" + name)})
		text = args
	}
	if text != "" {
		it.Parts = append(it.Parts, b.typed(text)...)
	}
	if rec.Message != nil {
		it.Parts = append(it.Parts, b.pictures(b.blocks)...)
	}
	b.push(it)
}

// program shows a user record that no human wrote.
func (b *Builder) program(rec transcript.Record, it Item) {
	if rec.Interrupted() {
		b.put(it, "note", "stop", Part{Kind: "note", Title: "Interrupted by the user"})
		return
	}
	text := strings.TrimSpace(rec.Message.Text())
	switch {
	case rec.Sidechain && rec.ParentUUID == "" && !rec.Meta:
		b.put(it, "prompt", "Task", append([]Part{b.markdown(text)}, b.pictures(b.blocks)...)...)
	case b.command(rec, it, text):
	case text == "" || onlyResults(rec):
		return
	default:
		b.noise(rec, it)
	}
}

// onlyResults says whether the record's results, which are shown elsewhere, are all it has.
func onlyResults(rec transcript.Record) bool {
	return !slices.ContainsFunc(rec.Message.RawBlocks(), func(x transcript.RawBlock) bool {
		return x.Kind != transcript.ToolResultBlock
	})
}

// command shows a command of the program's own, or a shell command typed with !, or what came of one.
func (b *Builder) command(rec transcript.Record, it Item, text string) bool {
	if name, args, ok := rec.Command(); ok {
		b.put(it, "note", "command", Part{Kind: "command", Title: words("/" + name + " " + args)})
		return true
	}
	if s := tagged(text, "bash-input"); s != "" {
		b.put(it, "note", "command", Part{Kind: "command", Title: words("! " + s)})
		return true
	}
	for _, name := range []string{"local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr"} {
		if !strings.HasPrefix(text, "<"+name+">") {
			continue
		}
		out := strings.TrimSpace(tagged(text, name))
		if name == "bash-stdout" {
			out = strings.TrimSpace(out + "\n" + tagged(text, "bash-stderr"))
		}
		if out == "" {
			it.Who = "command"
			b.noise(rec, it)
			return true
		}
		b.put(it, "note", "output", b.terminal(out))
		return true
	}
	return false
}

// tagged is what stands between <name> and </name>.
func tagged(text, name string) string {
	_, rest, found := strings.Cut(text, "<"+name+">")
	if !found {
		return ""
	}
	inner, _, _ := strings.Cut(rest, "</"+name+">")
	return strings.TrimSpace(inner)
}

// assistant shows one block or more of an answer.
func (b *Builder) assistant(rec transcript.Record, it Item) {
	if rec.Message == nil {
		b.noise(rec, it)
		return
	}
	if rec.APIError {
		b.put(it, "error", "Error", b.plain(cmp.Or(rec.Message.Text(), rec.Error, "The model could not be reached.")))
		return
	}
	if rec.Message.Synthetic() {
		b.noise(rec, it)
		return
	}
	it.Kind, it.Who, it.Model = "answer", "Claude", rec.Message.Model
	for _, x := range b.blocks {
		if !b.budget.Piece() {
			it.Parts = append(it.Parts, b.rest())
			break
		}
		it.Parts = append(it.Parts, b.block(rec, x)...)
	}
	if len(it.Parts) == 0 {
		b.noise(rec, it)
		return
	}
	b.push(it)
}

// block shows one block of an answer. Nothing of it may be worth showing.
func (b *Builder) block(rec transcript.Record, x transcript.Block) []Part {
	switch x.Kind {
	case transcript.TextBlock:
		if strings.TrimSpace(x.Text) == "" {
			return nil
		}
		return []Part{b.markdown(x.Text)}
	case transcript.ThinkingBlock:
		if strings.TrimSpace(x.Text) == "" {
			return b.ifEverything("thinking, not recorded")
		}
		p := b.markdown(x.Text)
		p.Kind = "think"
		return []Part{p}
	case transcript.RedactedThinkingBlock:
		return b.ifEverything("thinking, redacted")
	case transcript.ToolUseBlock:
		return []Part{{Kind: "tool", Tool: b.call(rec, x)}}
	case transcript.ToolResultBlock: // of a tool that ran on the server
		if t := b.calls[x.ToolID]; t != nil && t.ResultLine < 0 {
			b.finish(t, rec, x)
			return nil
		}
		return b.output(b.earlier[x.ToolID], readOutcome(rec.ToolResult), x)
	case transcript.ImageBlock, transcript.DocumentBlock:
		return b.pictures([]transcript.Block{x})
	}
	return []Part{{Kind: "fold", Title: words(cmp.Or(x.Type, "block")), Parts: []Part{b.json(x.Raw)}}}
}

// rest stands for what a page has no space for.
func (b *Builder) rest() Part {
	b.cut = true
	return Part{Kind: "note", Title: "This line has more than a page can show"}
}

func (b *Builder) ifEverything(words string) []Part {
	if b.mode != Everything {
		return nil
	}
	return []Part{{Kind: "note", Title: words}}
}

// other shows a record that is neither.
func (b *Builder) other(rec transcript.Record, it Item) {
	switch {
	case rec.Compact != nil && !rec.Compact.Micro:
		b.put(it, "divider", "compaction", Part{Kind: "note", Title: CompactionText(rec.Compact)})
	case rec.Type == "attachment":
		if said := rec.Speech(); said.Speaker != transcript.NoSpeaker {
			b.said(rec, it, said)
			return
		}
		b.noise(rec, it)
	case rec.Type == "queue-operation" && b.event != nil:
		it.Kind, it.Who, it.Tags = "prompt", transcript.SpeakerLabel(b.event.Speaker, b.event.From), []string{"queued"}
		it.Parts = b.typed(b.event.Text)
		if !b.event.Speaker.Human() {
			it.Kind, it.Parts = "message", []Part{b.markdown(b.event.Text)}
		}
		b.push(it)
	case rec.Type == "system" && rec.Subtype == "local_command":
		if !b.command(rec, it, strings.TrimSpace(rec.Text)) {
			b.noise(rec, it)
		}
	case rec.Labels != nil && rec.Labels.PRURL != "":
		b.pullRequest(rec, it)
	case rec.Lineage != nil && rec.Lineage.ContinuedIn != "":
		next := Stream{ID: rec.Lineage.ContinuedIn, Generation: -1}
		b.put(it, "note", "lineage",
			Part{Kind: "note", Title: "Continued in another session", Link: b.elsewhere(next.Path(""))})
	default:
		b.noise(rec, it)
	}
}

func CompactionText(c *transcript.Compact) string {
	words := "Conversation compacted"
	if c.Trigger == "auto" {
		words = "Conversation auto-compacted"
	}
	if c.Pre > 0 {
		words += " at " + page.Tokens(c.Pre) + " tokens"
		if c.Post > 0 {
			words += ", " + page.Tokens(c.Post) + " left"
		}
	}
	return words
}

// pullRequest links to a pull request, if that is an address that may be linked to.
func (b *Builder) pullRequest(rec transcript.Record, it Item) {
	note := Part{Kind: "note", Title: fmt.Sprintf("Pull request #%d", rec.Labels.PRNumber)}
	u, err := url.Parse(rec.Labels.PRURL)
	if err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" {
		note.Title, note.Link = note.Title+" "+u.Host+u.Path, u.String()
	}
	b.put(it, "note", "pull request", note)
}

// pictures shows images and documents that stand in a message.
func (b *Builder) pictures(blocks []transcript.Block) []Part {
	var out []Part
	for _, x := range blocks {
		if x.Kind != transcript.ImageBlock && x.Kind != transcript.DocumentBlock {
			continue
		}
		if !b.budget.Piece() {
			return append(out, b.rest())
		}
		out = append(out, b.picture(x))
	}
	return out
}

// picture shows one. Each image of a line has a number, its position in what imagesOf answers.
func (b *Builder) picture(x transcript.Block) Part {
	if b.images == nil {
		b.images = Images(b.at.Line)
	}
	n := numberOf(x, b.images)
	p := &Picture{Kind: x.MediaType, Size: int64(len(x.Data)) * 3 / 4,
		Alt: fmt.Sprintf("Image %d of line %d", n+1, b.at.Index+1)}
	if x.Kind == transcript.DocumentBlock {
		p.Alt = fmt.Sprintf("Document in line %d", b.at.Index+1)
	}
	if len(x.Data) == 0 {
		return Part{Kind: "note", Title: p.Alt + ", not in the transcript"}
	}
	if kind := ImageType(x); kind != "" && n >= 0 {
		if p.URL = b.pictureURL(kind, n, x); p.URL != "" {
			return Part{Kind: "image", Image: p}
		}
	}
	if source, ok := svgSource(x); ok {
		q := b.code(source, "xml")
		return Part{Kind: "fold", Title: p.Alt + " (SVG, as source)", Parts: []Part{q}}
	}
	return Part{Kind: "note", Title: fmt.Sprintf("%s: %s, %s", p.Alt, cmp.Or(p.Kind, "unknown kind"), page.Size(p.Size))}
}

// pictureURL is where an image is: here, or in the page itself.
func (b *Builder) pictureURL(kind string, n int, x transcript.Block) template.URL {
	if !b.Inline {
		return template.URL(b.base + b.stream.Path(fmt.Sprintf("/image/%d/%d", b.at.Index, n))) //nolint:gosec // made by us
	}
	data, err := DecodeImage(x.Data)
	if err != nil {
		return ""
	}
	return template.URL("data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data))
}
