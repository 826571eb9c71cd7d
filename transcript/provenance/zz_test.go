package provenance

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

func zzThread() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(1, &u)
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

func TestZZ(t *testing.T) {
	runtime.LockOSThread()
	files, _ := filepath.Glob(os.Getenv("CORPUS") + "/*.jsonl")
	var edits, sums, adds, size int
	type item struct {
		line int64
		r    transcript.Record
		ev   []session.Event
	}
	var lap [4]float64
	var bytesB uint64
	var m0, m1 runtime.MemStats
	digest := uint64(14695981039346656037)
	for _, f := range files {
		text, _ := os.ReadFile(f)
		size += len(text)
		var lines [][]byte
		s := bufio.NewScanner(bytes.NewReader(text))
		s.Buffer(nil, 64<<20)
		for s.Scan() {
			lines = append(lines, bytes.Clone(s.Bytes()))
		}
		items := make([]item, len(lines))
		a := zzThread()
		for i, l := range lines {
			items[i] = item{int64(i), transcript.Parse(l), nil}
		}
		b := zzThread()
		fold := &session.Fold{}
		for i := range items {
			items[i].ev = append([]session.Event(nil), fold.Add(int64(i), items[i].r)...)
		}
		c := zzThread()
		runtime.ReadMemStats(&m0)
		c = zzThread()
		w := &Builder{}
		for i := range items {
			for _, e := range w.Add(items[i].line, &items[i].r, items[i].ev) {
				edits++
				sums += len(e.Sums)
				for _, x := range append([]byte(e.Path), byte(e.Line)) {
					digest = (digest ^ uint64(x)) * 1099511628211
				}
				for _, x := range e.Sums {
					for _, y := range x {
						digest = (digest ^ uint64(y)) * 1099511628211
					}
				}
			}
			adds++
		}
		d := zzThread()
		runtime.ReadMemStats(&m1)
		bytesB += m1.TotalAlloc - m0.TotalAlloc
		lap[0] += b - a
		lap[1] += c - b
		lap[2] += d - c
	}
	fmt.Printf("MB %.1f parse %.3f fold %.3f builder %.3f allocMB %.1f edits %d sums %d adds %d digest %x\n", float64(size)/1e6, lap[0], lap[1], lap[2], float64(bytesB)/1e6, edits, sums, adds, digest)
}
