package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// utf16le encodes ASCII text as PowerShell's > writes it.
func utf16le(text string) string {
	out := []byte{0xff, 0xfe}
	for i := range len(text) {
		out = append(out, text[i], 0)
	}
	return string(out)
}

// Verify counts the files whose last line has no end: the server lacks those bytes, and nothing else is wrong.
func TestVerifyLastLineWithoutEnd(t *testing.T) {
	w := newWorld(t)
	whole := records("/home/kim/shop", 0, 3)
	w.write("-p/"+sessionA+".jsonl", whole+`{"type":"user","message":{"content":"torn`)
	w.write("-p/"+sessionB+".jsonl", utf16le(whole))
	w.write("-p/00000000-0000-4000-8000-0000000000e1.jsonl", `{"type":"us`) // nothing else yet
	w.write("-p/00000000-0000-4000-8000-0000000000e2.jsonl", whole+`{"type":"user","cwd":"/home/kim/shop"}`)
	w.startWith("-p/00000000-0000-4000-8000-0000000000e3.jsonl", whole)
	w.until("the last line without a newline arrives", func() bool {
		return w.server.newest("00000000-0000-4000-8000-0000000000e2") != whole
	})
	w.until("status counts them too", func() bool { return w.status().Files.Unfinished == 3 })
	r := w.verify()
	kit.Check(t, r.Equal && r.Unfinished == 3 && len(r.Differences) == 0, "equal %v, %d unfinished, %+v", r.Equal, r.Unfinished, r.Differences)
}

// A *.jsonl file that is no transcript, and folders with conversations that are not watched, are named by status and
// verify.
func TestNotRead(t *testing.T) {
	w := newWorld(t)
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 3))
	stray := w.write("-p/folder/notes.jsonl", "{}\n")
	other := filepath.Join(filepath.Dir(filepath.Dir(w.root)), ".claude-work", "projects")
	w.startWith("../../.claude-work/projects/-p/"+sessionB+".jsonl", records("/home/kim/shop", 0, 3))
	if r := w.verify(); !r.Equal || !slices.Equal(r.Stray, []string{stray}) || len(r.Elsewhere) != 1 ||
		filepath.Base(filepath.Dir(r.Elsewhere[0].Path)) != ".claude-work" || r.Elsewhere[0].Transcripts != 1 {
		t.Errorf("verify: %+v", r)
	}
	s := w.status()
	kit.Check(t, slices.Equal(s.Watch.Stray, []string{stray}) && len(s.Watch.Elsewhere) == 1, "watch: %+v", s.Watch)
	var kinds []string
	for _, a := range s.Advice {
		kinds = append(kinds, a.Kind)
	}
	kit.Check(t, slices.Equal(kinds, []string{"stray", "elsewhere"}), "advice: %v", kinds)
	kit.Must(t, os.RemoveAll(filepath.Dir(other)))
	kit.Must(t, os.Remove(stray))
	w.sync()
	s = w.status()
	kit.Check(t, len(s.Watch.Stray)+len(s.Watch.Elsewhere) == 0, "after they are gone: %+v", s.Watch)
	w.write("../../.claude-work/projects/-p/"+sessionB+".jsonl", records("/home/kim/shop", 0, 3))
	w.sync()
	s = w.status()
	kit.Check(t, len(s.Watch.Elsewhere) == 1, "after a sync: %+v", s.Watch)
}

// Odd lines are counted as long as they are on disk: after a restart, not after a rewind or when the file is gone.
func TestOddLinesOnDisk(t *testing.T) {
	w := newWorld(t)
	w.cfg.LineCap = 1 << 20
	head := records("/home/kim/shop", 0, 2) + "no json\n" + records("/home/kim/shop", 2, 3)
	long := `{"type":"user","text":"` + strings.Repeat("x", 1<<20) + "\"}\n"
	path := w.write("-p/"+sessionA+".jsonl", head+"nor this\n\n"+long+`{"cut":`+"\n")
	w.write("-p/"+sessionB+".jsonl", records("/home/kim/shop", 0, 2)+"no json\n")
	check := func(malformed, oversize int64) {
		t.Helper()
		w.sync()
		f := w.status().Files
		kit.Check(t, f.Malformed == malformed && f.Oversize == oversize, "%d malformed and %d too long, want %d and %d", f.Malformed, f.Oversize, malformed, oversize)
	}
	w.start()
	check(4, 1)
	w.restart()
	check(4, 1)
	kit.Must(t, os.Truncate(path, int64(len(head))))
	check(2, 0)
	w.write("-p/"+sessionA+".jsonl", "no json\n")
	check(3, 0)
	kit.Must(t, os.Remove(filepath.Join(w.root, "-p", sessionB+".jsonl")))
	check(2, 0)
}

// TestAttachmentsOfFiledSession: a session that was filed away keeps its files, also those written while nobody watched.
func TestAttachmentsOfFiledSession(t *testing.T) {
	w := newWorld(t)
	w.server.attachments.accept = "checkpoints, documents, blobs"
	folder := "archive/2026/-work-shop/" + attachmentSession
	w.write(folder+".jsonl", attachmentLine(1))
	w.write(folder+"/tool-results/toolu_1.txt", "spilled text")
	w.start()
	w.hasBlob("tool-results/toolu_1.txt", "spilled text")
	w.stop()
	w.write(folder+"/tool-results/toolu_2.txt", "more")
	w.start()
	w.hasBlob("tool-results/toolu_2.txt", "more")
}

// TestStateFolderGone: a daemon whose state folder is taken away says so while it is gone, delivers all the same, and
// writes its state again where the folder comes back.
func TestStateFolderGone(t *testing.T) {
	w := newWorld(t)
	w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 3))
	w.sync()
	kit.Check(t, !w.told("state folder"), "at first: %+v", w.status().Advice)
	kit.Must(t, os.Rename(w.cfg.StateDir, w.cfg.StateDir+".moved"))
	kit.Check(t, w.told(w.cfg.StateDir), "while it is gone: %+v", w.status().Advice)
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 3, 5))
	kit.Check(t, w.sync().Done && w.server.newest(sessionA) == records("/home/kim/shop", 0, 5), "not delivered")
	kit.Must(t, os.Mkdir(w.cfg.StateDir, 0o700))
	lines := 5
	w.until("the state is there again", func() bool {
		w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", lines, lines+1))
		lines++
		return !w.told("state folder")
	})
}

// TestSyncUnreadable: beside a transcript that cannot be read, sync and verify deliver the rest, and name that one
// instead of waiting for it.
func TestSyncUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	w := newWorld(t)
	locked := w.write("-p/"+sessionB+".jsonl", records("/home/kim/shop", 0, 3))
	kit.Must(t, os.Chmod(locked, 0))
	w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 3))
	r := kit.Try(w.client.Sync(t.Context(), control.SyncRequest{Wait: true, Timeout: "1h"})).Must(t)
	kit.Check(t, !r.Done && r.Reason == "unreadable" && strings.Contains(r.Detail, locked), "sync: %+v", r)
	kit.Equal(t, "the other", w.server.newest(sessionA), records("/home/kim/shop", 0, 3))
	v := kit.Try(w.client.Verify(t.Context(), control.VerifyRequest{Timeout: "1h"}, nil)).Must(t)
	kit.Check(t, !v.Equal && strings.Contains(v.Incomplete, locked), "verify: %+v", v)
	kit.Equal(t, "state", w.status().State, control.StateWatching)
	kit.Must(t, os.Chmod(locked, 0o600))
	kit.Check(t, w.sync().Done, "it is not done once the file can be read")
	kit.Equal(t, "the one that could not be read", w.server.newest(sessionB), records("/home/kim/shop", 0, 3))
}
