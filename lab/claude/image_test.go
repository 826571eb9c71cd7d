//go:build unix

package claude_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/png"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit/setting"
)

// lookalike has the form of an access key. As a text it is masked; in the base64 of an image it is chance.
const lookalike = "AKIAQ4ZLUT7WXBN5KPEY"

// TestRealClaudeImage shows the model images, by lines of JSON and pasted at a terminal, in each version, while secrets are
// masked: the history has a placeholder, and the server every byte.
func TestRealClaudeImage(t *testing.T) {
	setting.Asked(t)
	for _, version := range allVersions() {
		t.Run(version, func(t *testing.T) {
			h := newHome(t, installed(t, version), newStub(t))
			h.version = version
			w := newWorld(h)
			if out, code := w.ccship("config", "redact", "on"); code != 0 {
				t.Fatalf("config set: exit %d\n%s", code, out)
			}
			w.start()
			picture := testPicture(t)
			secret := w.prompt("my key is " + lookalike).SessionID
			shown := w.show(picture)
			pasted := w.paste(picture, map[string]bool{secret: true, shown: true})
			w.sync()
			w.has(shown, []string{"text user: [image]"}, nil)
			placeholder := "text user: look at [Image #1]"
			if version == "2.0.76" { // it leaves the image out of the text
				placeholder = "text user: look at [image]"
			}
			w.has(pasted, []string{placeholder}, nil)
			if bytes.Contains(w.raw(secret), []byte(lookalike)) {
				t.Error("a text is not masked")
			}
			for _, session := range []string{shown, pasted} {
				onDisk := read(t, transcripts(t, w.projects())[session])
				if !bytes.Contains(onDisk, []byte(lookalike)) {
					t.Errorf("Claude Code has changed the image: the transcript lacks %s", lookalike)
				}
				if got := w.raw(session); !bytes.Equal(got, onDisk) {
					t.Errorf("%s: %s", session, firstDifference(got, onDisk))
				}
			}
			w.verify()
		})
	}
}

// show sends an image without a text, and returns the session.
func (w *world) show(picture []byte) string {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d := w.converse(ctx)
	o := d.prompt([]map[string]any{{"type": "image", "source": map[string]any{
		"type": "base64", "media_type": "image/png", "data": base64.StdEncoding.EncodeToString(picture),
	}}})
	d.end()
	return o.SessionID
}

// paste pastes the path of an image into a prompt at a terminal, and returns the session.
func (w *world) paste(picture []byte, known map[string]bool) (session string) {
	w.t.Helper()
	path := filepath.Join(w.cwd(), "picture.png")
	must(w.t, os.WriteFile(path, picture, 0o600))
	c := w.open()
	defer c.close()
	c.tmux("send-keys", "-l", "look at ")
	c.shows("look at")
	c.tmux("set-buffer", path)
	c.tmux("paste-buffer", "-p")
	c.shows("[Image #1]")
	c.keys("Enter")
	c.shows("You said: ")
	eventually(w.t, "the session has a transcript", time.Minute, func() bool {
		for _, name := range mains(w.t, w) {
			if !known[name] {
				session = name
			}
		}
		return session != "" && strings.Contains(string(read(w.t, transcripts(w.t, w.projects())[session])), "You said: ")
	})
	c.end()
	return session
}

// raw is a stream as the server has it.
func (w *world) raw(stream string) []byte {
	w.t.Helper()
	code, body := w.get("/api/sessions/" + url.PathEscape(stream) + "/raw")
	if code != http.StatusOK {
		w.t.Fatalf("raw of %s: %d %.500s", stream, code, body)
	}
	return body
}

// testPicture is a small PNG whose base64 has the lookalike in it, in a chunk that says nothing.
func testPicture(t testing.TB) []byte {
	t.Helper()
	var plain bytes.Buffer
	must(t, png.Encode(&plain, image.NewGray(image.Rect(0, 0, 16, 16))))
	letters, err := base64.StdEncoding.DecodeString(lookalike)
	must(t, err)
	const end = 12 // bytes of the last chunk
	head := plain.Bytes()[:plain.Len()-end]
	for pad := range 3 { // base64 encodes three bytes at a time
		data := append(make([]byte, pad), letters...)
		chunk := append([]byte("prVt"), data...)
		whole := binary.BigEndian.AppendUint32(bytes.Clone(head), uint32(len(data)))
		whole = append(whole, chunk...)
		whole = binary.BigEndian.AppendUint32(whole, crc32.ChecksumIEEE(chunk))
		whole = append(whole, plain.Bytes()[len(head):]...)
		if strings.Contains(base64.StdEncoding.EncodeToString(whole), lookalike) {
			return whole
		}
	}
	t.Fatalf("no image with %s", lookalike)
	return nil
}
