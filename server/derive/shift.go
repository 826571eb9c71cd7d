package derive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
)

// shift is what a worker does with the tasks that it leased at once. What is derived of several streams is stored in
// one transaction.
type shift struct {
	d     *Deriver
	ends  time.Time
	rest  bool  // streams rest when they are done
	steps int   // that were made
	first error // of a task

	group []saving
	text  int // bytes of texts in the group
	rows  int
}

// saving is a step that waits to be stored.
type saving struct {
	w   *derivation
	out *server.Derivation
}

// derive works on every task: until it is done, or in the first step after the shift has ended.
func (s *shift) derive(ctx context.Context, tasks []server.Task) {
	for _, task := range tasks {
		w := s.d.kept.take(s.d.Store, &task)
		for ended := false; !ended; {
			w.last = time.Now().After(s.ends)
			out, err := w.step(ctx)
			if err != nil {
				s.failed(&task, err)
				break
			}
			out.Released = !out.Done && w.last
			if s.rest && out.Done {
				out.Rest = rest
			}
			ended = out.Done || out.Released
			if s.add(w, out); !ended || s.full() {
				ended = !s.save(ctx) || ended
			}
		}
	}
	s.save(ctx)
}

// failed keeps the first error. Another worker has the stream, it has changed, or it was forgotten: that is none.
func (s *shift) failed(task *server.Task, err error) {
	if errors.Is(err, server.ErrStale) || errors.Is(err, server.ErrNotFound) || s.first != nil {
		return
	}
	s.first = fmt.Errorf("derive session %q: %w", task.SessionID, err)
}

func (s *shift) add(w *derivation, out *server.Derivation) {
	s.steps++
	s.group = append(s.group, saving{w, out})
	for i := range out.Texts {
		s.text += len(out.Texts[i].Text)
	}
	s.rows += len(out.Answers) + len(out.Moments)
}

// full says that the group is as much as a transaction may write.
func (s *shift) full() bool {
	return s.text >= stepText || s.rows >= stepAnswers || len(s.group) >= leaseMost
}

// save stores the group; steps that cannot be stored together are stored one by one. It reports whether the last one
// is stored.
func (s *shift) save(ctx context.Context) (saved bool) {
	group := s.group
	s.group, s.text, s.rows = nil, 0, 0
	if len(group) == 0 {
		return true
	}
	list := make([]*server.Derivation, len(group))
	for i, x := range group {
		list[i] = x.out
	}
	err := s.d.Store.SaveDerived(ctx, list...)
	for i, x := range group {
		err := err
		if err != nil && len(group) > 1 {
			err = s.d.Store.SaveDerived(ctx, list[i])
		}
		if saved = err == nil; !saved {
			s.failed(&x.w.task, err)
			continue
		}
		x.w.stored(x.out)
		if x.out.Done {
			s.d.kept.put(x.w)
		}
	}
	return saved
}
