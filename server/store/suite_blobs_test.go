package store_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

func uploadOf(owner int64, session, name string, content []byte) *server.Upload {
	return &server.Upload{Head: paperHead(session, "e"), Owner: owner, SHA256: sha256.Sum256(content), Size: int64(len(content)),
		Name: name, Media: "text/plain", At: start}
}

// push sends what is missing and answers where it got to.
func push(t *testing.T, st full, u *server.Upload, content []byte, chunk int) error {
	t.Helper()
	have, complete, err := st.StartBlob(t.Context(), u)
	for err == nil && !complete && have < u.Size {
		have, err = st.PutBlob(t.Context(), u.Owner, u.SHA256, have, content[have:min(have+int64(chunk), u.Size)], u.At)
	}
	if err != nil {
		return err
	}
	return st.EndBlob(t.Context(), u)
}

func upload(t *testing.T, st full, owner int64, session, name string, content []byte) (sum string) {
	t.Helper()
	u := uploadOf(owner, session, name, content)
	kit.Must(t, push(t, st, u, content, server.MaxChunk))
	return fmt.Sprintf("%x", u.SHA256)
}

func blobContent(t *testing.T, st full, sum string) string {
	t.Helper()
	_, from, err := st.BlobContent(t.Context(), all, sum)
	if err != nil {
		return err.Error()
	}
	b, err := io.ReadAll(from)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func expectOffset(t *testing.T, what string, err error, have int64, wrong bool) {
	t.Helper()
	at, ok := errors.AsType[*server.OffsetError](err)
	kit.Check(t, ok && at.Have == have && at.Wrong == wrong, "%s: %v, want offset %d", what, err, have)
}

func (s suite) upload(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	content := []byte("0123456789")
	u := uploadOf(1, "s", "tool-results/t.txt", content)
	kit.Err(t, "an upload that was not begun", server.ErrNotFound)(st.PutBlob(ctx, 1, u.SHA256, 0, content, start))
	kit.Err(t, "the end of an upload that was not begun", server.ErrNotFound)(nil, st.EndBlob(ctx, u))
	for _, want := range []int64{0, 4, 8} {
		have, complete, err := st.StartBlob(ctx, u)
		kit.Require(t, err == nil && have == want && !complete, "%d, %v, %v", have, complete, err)
		for _, offset := range []int64{have - 1, have + 1, 1 << 50} {
			_, err := st.PutBlob(ctx, 1, u.SHA256, offset, []byte("x"), start)
			expectOffset(t, fmt.Sprint("at ", offset), err, have, false)
		}
		expectOffset(t, "the end before the end", st.EndBlob(ctx, u), have, false)
		list, err := st.Blobs(ctx, all, ofSession("s"))
		kit.Check(t, err == nil && len(list) == 0, "half a file shows: %+v, %v", list, err)
		got, err := st.PutBlob(ctx, 1, u.SHA256, have, content[have:min(have+4, 10)], start)
		kit.Require(t, err == nil && got == min(have+4, 10), "%d, %v", got, err)
		if want == 4 {
			st = s.reopen(t, st)
		}
	}
	for range 2 {
		kit.Must(t, st.EndBlob(ctx, u))
	}
	kit.Equal(t, "the content", blobContent(t, st, fmt.Sprintf("%x", u.SHA256)), string(content))
	_, err := st.PutBlob(ctx, 1, u.SHA256, 0, content, start)
	expectOffset(t, "a chunk of a whole file", err, 10, false)
	other := uploadOf(1, "t", "tool-results/other.txt", content) // stored once, of two sessions
	have, complete, err := st.StartBlob(ctx, other)
	kit.Check(t, err == nil && complete && have == 10, "%d, %v, %v", have, complete, err)
	list := kit.Try(st.Blobs(ctx, all, ofSession("t"))).Must(t)
	kit.Check(t, len(list) == 1 && list[0].Name == "tool-results/other.txt" && list[0].Size == 10, "%+v", list)
	stranger := uploadOf(2, "u", "tool-results/t.txt", content) // knowing the hash is not having the file
	have, complete, err = st.StartBlob(ctx, stranger)
	kit.Check(t, err == nil && !complete && have == 0, "%d, %v, %v", have, complete, err)
	upload(t, st, 1, "s", "tool-results/empty.txt", nil)
	kit.Equal(t, "an empty file is", blobContent(t, st, fmt.Sprintf("%x", sha256.Sum256(nil))), "")
}

// uploadLies: what is not what it says is not kept.
func (s suite) uploadLies(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	content, other := []byte("0123456789"), []byte("9876543210")
	u := uploadOf(1, "s", "tool-results/t.txt", content)
	_, _, err := st.StartBlob(ctx, u)
	kit.Require(t, err == nil, "%v", err)
	kit.Err(t, "more than its size", server.ErrSize)(st.PutBlob(ctx, 1, u.SHA256, 0, append(other, 'x'), start))
	kit.Try(st.PutBlob(ctx, 1, u.SHA256, 0, other, start)).Must(t)
	expectOffset(t, "another hash", st.EndBlob(ctx, u), 0, true)
	expectOffset(t, "and again", st.EndBlob(ctx, u), 0, false)
	got := blobContent(t, st, fmt.Sprintf("%x", u.SHA256))
	kit.Check(t, got != string(other), "the wrong bytes can be read")
	kit.Try(st.PutBlob(ctx, 1, u.SHA256, 0, content[:5], start)).Must(t)
	longer := *u
	longer.Size = 11 // begins again
	have, complete, err := st.StartBlob(ctx, &longer)
	kit.Check(t, err == nil && have == 0 && !complete, "%d, %v, %v", have, complete, err)
	kit.Must(t, push(t, st, u, content, 3))
	kit.Err(t, "another size of a whole file", server.ErrSize)(st.StartBlob(ctx, &longer))
	kit.Equal(t, "the content", blobContent(t, st, fmt.Sprintf("%x", u.SHA256)), string(content))
	for _, sum := range append(hostile, "", "00", fmt.Sprintf("%x", sha256.Sum256([]byte("?")))) {
		kit.Err(t, sum, server.ErrNotFound)(st.BlobContent(ctx, all, sum))
	}
}

// uploadsAtOnce: many send the same file for many sessions at the same time; it is there once, whole.
func (s suite) uploadsAtOnce(t *testing.T) {
	st := s.open(t)
	content := bytes.Repeat([]byte("0123456789abcdef"), 64<<10) // 1 MiB
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			u := uploadOf(1, fmt.Sprint("s", i), "tool-results/t.txt", content)
			for {
				err := push(t, st, u, content, 100_000)
				if _, elsewhere := errors.AsType[*server.OffsetError](err); elsewhere {
					continue // another was faster
				}
				kit.Should(t, err)
				return
			}
		})
	}
	wg.Wait()
	kit.Equal(t, "bytes", blobContent(t, st, fmt.Sprintf("%x", sha256.Sum256(content))), string(content))
	for i := range 6 {
		list, err := st.Blobs(t.Context(), all, ofSession(fmt.Sprint("s", i)))
		kit.Check(t, err == nil && len(list) == 1, "%+v, %v", list, err)
	}
	noFindings(t, st, 1)
}

// noFindings checks every file.
func noFindings(t *testing.T, st full, files int64) {
	t.Helper()
	var n int64
	err := st.AuditBlobs(t.Context(), func(problem string) { t.Error(problem) }, func(blobs, _ int64) { n = blobs })
	kit.Check(t, err == nil && n == files, "%d files, want %d, %v", n, files, err)
}

// uploadRoom: one user can begin no more than so many; those that rest give way, and other users do not wait.
func (s suite) uploadRoom(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	begin := func(owner int64, n int, at time.Time) error {
		u := uploadOf(owner, "s", "tool-results/t.txt", fmt.Append(nil, "file ", n))
		u.At = at
		_, _, err := st.StartBlob(ctx, u)
		return err
	}
	for n := range server.MaxUploads {
		kit.Must(t, begin(1, n, start))
	}
	kit.Err(t, "one more", server.ErrTooManyUploads)(nil, begin(1, 1000, start.Add(time.Minute)))
	kit.Equal(t, "one of them again", begin(1, 3, start.Add(time.Minute)), nil)
	kit.Equal(t, "somebody else's", begin(2, 1000, start), nil)
	kit.Equal(t, "one more, when they rest", begin(1, 1000, start.Add(time.Hour)), nil)
}

func (s suite) sweep(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	u := uploadOf(1, "s", "tool-results/t.txt", []byte("0123456789"))
	_, _, err := st.StartBlob(ctx, u)
	kit.Require(t, err == nil, "%v", err)
	kit.Try(st.PutBlob(ctx, 1, u.SHA256, 0, []byte("01234"), start.Add(time.Hour))).Must(t)
	upload(t, st, 1, "s", "tool-results/whole.txt", []byte("whole"))
	for _, step := range []struct {
		before time.Time
		want   int64
	}{{start.Add(time.Hour), 0}, {start.Add(2 * time.Hour), 1}, {start.Add(2 * time.Hour), 0}} {
		kit.Gives(t, "removed", step.want)(st.SweepBlobs(ctx, step.before))
	}
	have, complete, err := st.StartBlob(ctx, u)
	kit.Check(t, err == nil && have == 0 && !complete, "it goes on at %d, %v, %v", have, complete, err)
	noFindings(t, st, 1)
}

// forgetArtifacts: everything of a session goes, but what another one has too.
func (s suite) forgetArtifacts(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann := addUser(t, st, "ann", server.Member)
	for _, session := range []string{"s", "t"} {
		putDocuments(t, st, ann.ID, session, "e", version("shared.md", 1, server.Linked, "of both"), version(session+".md", 1, server.Linked, "of "+session))
		putCheckpoints(t, st, ann.ID, session, "e", mark("cp-"+session, 1))
		upload(t, st, ann.ID, session, "tool-results/t.txt", []byte("result of both"))
		upload(t, st, ann.ID, session, "tool-results/"+session, []byte("result of "+session))
		kit.Try(st.RequestLink(ctx, all, ofSession(session), server.LinkRequestInput{Path: "x", Link: true, By: ann.ID, At: start})).Must(t)
	}
	half := uploadOf(ann.ID, "s", "tool-results/half", []byte("half"))
	_, _, err := st.StartBlob(ctx, half)
	kit.Require(t, err == nil, "%v", err)
	noFindings(t, st, 6)
	gone, err := st.Forget(ctx, server.Scope{User: ann.ID}, "s", 0, start)
	kit.Require(t, err == nil && gone.Lines == 0, "%+v, %v", gone, err)
	noFindings(t, st, 4)
	kit.Err(t, "documents", server.ErrNotFound)(st.Documents(ctx, all, ofSession("s")))
	kit.Err(t, "checkpoint", server.ErrNotFound)(st.Checkpoint(ctx, all, "cp-s", 0))
	asked, err := st.PendingLinkRequests(ctx, ann.ID, "m")
	kit.Check(t, err == nil && len(asked) == 1 && asked[0].SessionID == "t", "link requests: %+v, %v", asked, err)
	kit.Err(t, "an upload goes on", server.ErrNotFound)(st.PutBlob(ctx, ann.ID, half.SHA256, 0, []byte("half"), start))
	kit.Equal(t, "the other's", history(t, st, "t", "shared.md"), []string{"1 linked user: of both"})
	for _, err := range []error{
		st.PutDocuments(ctx, &server.DocumentBatch{Head: paperHead("s", "e"), Owner: ann.ID, Received: start}),
		st.PutCheckpoints(ctx, &server.CheckpointBatch{Head: paperHead("s/agent-1", "e"), Owner: ann.ID, Received: start}),
		second(0, second2(st.StartBlob(ctx, half))), st.EndBlob(ctx, uploadOf(ann.ID, "s", "n", []byte("result of both"))),
	} {
		kit.Check(t, errors.Is(err, server.ErrForgotten), "it comes back: %v", err)
	}
	kit.Try(st.Forget(ctx, all, "t", 0, start)).Must(t)
	noFindings(t, st, 0)
}

func second2[A, B any](_ A, _ B, err error) error { return err }

// forgetDuringUpload: a content that one session brings while another one that has it is forgotten is there in the end.
func (s suite) forgetDuringUpload(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	for round := range 10 {
		gone, kept := fmt.Sprint("gone", round), fmt.Sprint("kept", round)
		content := fmt.Sprint("content ", round)
		putDocuments(t, st, 1, gone, "e", version("a", 1, server.Linked, content))
		var wg sync.WaitGroup
		wg.Go(func() { kit.Try(st.Forget(ctx, all, gone, 0, start)).Should(t) })
		wg.Go(func() {
			b := &server.DocumentBatch{Head: paperHead(kept, "e"), Owner: 1, Received: start, Events: []server.DocumentEvent{version("a", 1, server.Linked, content)}}
			kit.Should(t, st.PutDocuments(ctx, b))
		})
		wg.Wait()
		kit.Equal(t, "what is kept", history(t, st, kept, "a"), []string{"1 linked user: " + content})
	}
}

// auditBlobs: every content is looked at, and none is stored that no version has.
func (s suite) auditBlobs(t *testing.T) {
	st := s.open(t)
	unlinked, refused, unnumbered := version("a", 1, server.Unlinked, "u"), version("a", 1, server.Refused, "r"), version("a", 0, server.Linked, "n")
	putDocuments(t, st, 1, "s", "e", unlinked, refused, unnumbered, version("a", 1, server.Deleted, "d"))
	noFindings(t, st, 0)
	upload(t, st, 1, "s", "tool-results/t.txt", bytes.Repeat([]byte("x"), 2<<20))
	putDocuments(t, st, 1, "s", "e", version("a", 1, server.Linked, "one"))
	noFindings(t, st, 2)
}
