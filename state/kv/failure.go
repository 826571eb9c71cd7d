package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/ccship/ccship/internal/sys"
)

// bbolt cannot be used after a panic: the transaction that panicked may keep bbolt's locks, and the next caller waits
// forever. A failing disk leaves bbolt without a map of the file. So the first failure is final: from then on every
// call returns it at once, Run ends with it, and Close waits no longer than closeFailed. The process must then end. The
// next Open sets the file aside if it is damaged.

const (
	closeLimit  = 10 * time.Second // how long Close waits for transactions under way
	closeFailed = time.Second      // the same, after a failure: bbolt may keep its locks for ever
)

// fail ends all use of the file: every call returns cause from now on. After damage it leaves a marker for the next
// Open.
func (db *DB) fail(cause error) {
	db.fails.Do(func() {
		db.cause = cause
		close(db.broken)
		defer close(db.marked)
		db.log.Error("state can no longer be used", "path", db.opt.Path, "error", cause)
		if !errors.Is(cause, ErrCorrupt) {
			return
		}
		if err := mark(db.opt.Path+suffixBroken, cause); err != nil {
			db.log.Error("cannot mark the state as damaged", "path", db.opt.Path, "error", err)
		}
	})
}

// mark leaves a marker with what happened.
func mark(path string, cause error) error {
	f, err := sys.OpenOwn(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.WriteString(cause.Error() + "\n")
	return errors.Join(err, f.Close())
}

// failure returns why the file can no longer be used; nil: it can.
func (db *DB) failure() error {
	select {
	case <-db.broken:
		return db.cause
	default:
		return nil
	}
}

// guard runs code that uses the file. A failure of the file, also one that fn found in a row (ErrCorrupt), ends its
// use.
func (db *DB) guard(fn func() error) error {
	err := catch(fn)
	if errors.Is(err, ErrCorrupt) || errors.Is(err, ErrFailed) {
		db.fail(err)
	}
	return err
}

// catch turns the panics of a damaged file into ErrCorrupt: bbolt asserts what it reads, and because the file is
// mapped, a page that is unreadable or cut off causes a memory fault.
func catch(fn func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer rescue(&err, func() {})
	return fn()
}

// rescue must be deferred. It turns a panic over a damaged file into ErrCorrupt. It passes on a programming error as a
// panic, after undo.
func rescue(err *error, undo func()) {
	p := recover()
	if p == nil {
		return
	}
	if e, ok := p.(runtime.Error); ok && !overFile(e) {
		undo()
		panic(p)
	}
	*err = fmt.Errorf("%w: %s", ErrCorrupt, inWords(p))
}

// inWords returns the text that reports a panic over a damaged file.
func inWords(p any) string {
	e, ok := p.(runtime.Error)
	switch {
	case !ok:
		return fmt.Sprint(p) // bbolt says what it found
	case isFault(e):
		return "a page of it cannot be read: the disk fails, or the file was cut"
	}
	return "a page of it is not what it should be"
}

// isFault reports whether an error is a memory fault.
func isFault(e runtime.Error) bool {
	_, fault := e.(interface{ Addr() uintptr })
	return fault
}

// overFile reports whether the current panic is a memory fault or comes from bbolt's own code, where an index out of
// range means a damaged number.
func overFile(e runtime.Error) bool {
	if isFault(e) {
		return true
	}
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	panicked := false
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicked = true
		case panicked && !strings.HasPrefix(f.Function, "runtime."):
			return strings.HasPrefix(f.Function, "go.etcd.io/bbolt")
		}
		if !more {
			return false
		}
	}
}

// unusable returns ErrFailed for an error of bbolt that makes the open file unusable. A full disk does not.
func unusable(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, bolterrors.ErrInvalidMapping) || errors.Is(err, bolterrors.ErrDatabaseNotOpen) || diskFailed(err) {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return err
}

// checkPlace detects that the file was removed, replaced or truncated by something else. It writes a removed file
// again, because all of it is still readable.
func (db *DB) checkPlace(ctx context.Context) {
	err := db.inPlace()
	if errors.Is(err, fs.ErrNotExist) {
		if _, e := os.Stat(filepath.Dir(db.opt.Path)); e != nil {
			return // the disk is not there, or the folder is being moved
		}
		db.log.Warn("state file was removed: it is written again", "path", db.opt.Path)
		if e := db.Compact(ctx); e != nil && ctx.Err() == nil {
			db.fail(fmt.Errorf("%w: its file was removed: %w", ErrFailed, e))
		}
	}
}

// inPlace returns fs.ErrNotExist when no file has the name any more. Any other problem with the file ends its use.
func (db *DB) inPlace() error {
	b, release, err := db.acquire()
	if err != nil {
		return err
	}
	defer release()
	return db.guard(func() error {
		return db.look(b, func(tx *bbolt.Tx) error {
			info, err := os.Lstat(db.opt.Path)
			switch {
			case err != nil:
				return err
			case !os.SameFile(info, db.info):
				return fmt.Errorf("%w: another file has taken the place of %s", ErrFailed, db.opt.Path)
			case info.Size() < tx.Size():
				return fmt.Errorf("%w: it was cut from %d bytes to %d", ErrCorrupt, tx.Size(), info.Size())
			}
			return nil
		})
	})
}

// Close ends all use of the file. It first finishes transactions in progress; those that wait get ErrClosed. A second
// call does nothing. It waits ten seconds at most, after a failure one second: a hanging transaction is left to the end
// of the process. Otherwise it releases the lock last: nobody may open the file while this process has it mapped.
func (db *DB) Close() error {
	db.closing.Lock()
	defer db.closing.Unlock()
	if db.closed.Swap(true) {
		return nil
	}
	limit := closeLimit
	if db.failure() != nil {
		limit = closeFailed
	}
	end := time.NewTimer(limit)
	defer end.Stop()
	ended := make(chan error, 1)
	go func() { ended <- db.closeBolt() }()
	var err error
	select {
	case err = <-ended:
	case <-end.C:
		err = fmt.Errorf("a transaction did not end in %s", limit)
	}
	if e := db.lock.Release(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("close state: %w", err)
	}
	return nil
}

// closeBolt closes bbolt's file once nothing uses it, and waits until a damage marker is written.
func (db *DB) closeBolt() error {
	if db.failure() != nil {
		<-db.marked
	}
	db.group.write.Lock()
	defer db.group.write.Unlock()
	db.handle.Lock()
	defer db.handle.Unlock()
	if db.bolt == nil {
		return nil
	}
	err := db.bolt.Close()
	db.bolt = nil
	return err
}
