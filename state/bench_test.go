package state

import (
	"context"
	"fmt"
	"testing"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("steps=%d", n), func(b *testing.B) {
			db := open(b, Options{})
			line := int64(0)
			for b.Loop() {
				steps := make([]Step, n)
				for i := range steps {
					steps[i] = advance(tail.FileID(i+1), line, line+1, 400)
				}
				line++
				commit(b, db, steps...)
				for i := range steps {
					settleLater(b, db, uint64(i+1), steps[i].Batches[0].Seq, line)
				}
			}
		})
	}
}

// settleLater keeps the outbox of a long benchmark short.
func settleLater(b *testing.B, db *DB, stream, seq uint64, line int64) {
	if line%64 != 0 {
		return
	}
	b.StopTimer()
	defer b.StartTimer()
	var seqs []uint64
	for _, row := range peek(b, db, stream, 0, outbox.Limits{Entries: 1 << 30}).Batches {
		seqs = append(seqs, row.Seq)
	}
	settle(b, db, stream, seqs...)
}

// BenchmarkDrain reads and settles a backlog of 64 MB in rows of 128 KB, eight to a settlement.
func BenchmarkDrain(b *testing.B) {
	const rows, size, each = 512, 128 << 10, 8
	db := open(b, Options{})
	b.SetBytes(rows * size)
	from := int64(0)
	for b.Loop() {
		b.StopTimer()
		for i := int64(0); i < rows; i += 32 {
			steps := make([]Step, 32)
			for j := range steps {
				steps[j] = advance(1, from, from+1, size)
				from++
			}
			commit(b, db, steps...)
		}
		b.StartTimer()
		for range rows / each {
			p := peek(b, db, 1, 0, outbox.Limits{Entries: each})
			var seqs []uint64
			for _, row := range p.Batches {
				seqs = append(seqs, row.Seq)
			}
			settle(b, db, 1, seqs...)
		}
	}
}

// BenchmarkLoad reads 10 000 files, as every start does.
func BenchmarkLoad(b *testing.B) {
	db := open(b, Options{})
	var steps []Step
	for id := range tail.FileID(10_000) {
		s := advance(id*2654435761+1, 0, 1, 10)
		s.Batches = nil
		steps = append(steps, s)
	}
	commit(b, db, steps...)
	b.ReportAllocs()
	for b.Loop() {
		if files, err := db.Files.Load(context.Background()); err != nil || len(files) != 10_000 {
			b.Fatal(len(files), err)
		}
	}
}

// BenchmarkOpen opens a state of 10 000 files with 100 000 marks and a backlog of 64 MB.
func BenchmarkOpen(b *testing.B) {
	db := open(b, Options{})
	var steps []Step
	for id := range tail.FileID(10_000) {
		s := advance(id+1, 0, 1, 6400)
		for m := range int64(9) {
			s.Marks = append(s.Marks, tail.Mark{Offset: 100 + m, Line: m})
		}
		if steps = append(steps, s); len(steps) == 1000 {
			commit(b, db, steps...)
			steps = nil
		}
	}
	path := db.opt.Path
	closeNow(b, db)
	for b.Loop() {
		db, err := Open(context.Background(), Options{Path: path, FreeDisk: plenty})
		if err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
