package derive

import (
	"container/list"
	"sync"

	"github.com/ccship/ccship/server"
)

// keptBytes bounds what is kept of streams that were derived last, about.
const keptBytes = 48 << 20

// kept are the folds of streams that were derived last, so that the next line of a live session costs that line.
// The zero value is ready; safe for concurrent use.
type kept struct {
	mu    sync.Mutex
	by    map[int64]*list.Element // of recent, whose values are *derivation; guarded by mu
	order list.List               // most recently used in front
	bytes int
}

// take begins the work on a task: from what is kept of it, if that is as the task says.
func (k *kept) take(store Derivable, task *server.Task) *derivation {
	fresh := &derivation{store: store, task: *task, facts: task.Summary, before: task.Summary, clock: task.Summary.Ended,
		turn: -1}
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.by[task.Stream]
	if e == nil {
		return fresh
	}
	w := k.remove(e)
	if w.task.Position != task.Position || w.task.Masked != task.Masked || w.task.Version != task.Derived {
		return fresh // another worker derived it since, maybe from other lines
	}
	w.task, w.before = *task, task.Summary
	return w
}

// put keeps what a task left.
func (k *kept) put(w *derivation) {
	w.weight = w.size()
	if w.weight > keptBytes/4 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.by == nil {
		k.by = map[int64]*list.Element{}
	}
	if e := k.by[w.task.Stream]; e != nil {
		k.remove(e) // another worker's, whose lease had ended
	}
	k.by[w.task.Stream] = k.order.PushFront(w)
	for k.bytes += w.weight; k.bytes > keptBytes; {
		k.remove(k.order.Back())
	}
}

// remove is called with mu held.
func (k *kept) remove(e *list.Element) *derivation {
	w := k.order.Remove(e).(*derivation) //nolint:forcetypeassert // order has nothing else
	delete(k.by, w.task.Stream)
	k.bytes -= w.weight
	return w
}
