package store_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/todoku/todoku/store"
)

// BenchmarkImportMembers imports 100,000 members into an empty list, the same once more, and others in
// their place, each of which must take under 10 s. The heap is what an import holds beside the store.
func BenchmarkImportMembers(b *testing.B) {
	const members = 100_000
	s := openStore(b)
	var took [3]time.Duration
	var heap uint64
	for b.Loop() {
		list := createList(b, s)
		for i, of := range []struct {
			name    string
			replace bool
		}{{"A", false}, {"A", true}, {"B", true}} {
			var before, during runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			row := 0
			started := time.Now()
			done, err := s.ImportMembers(b.Context(), store.MembersImport{ListID: list, Replace: of.replace, Members: func() (store.NewMember, bool, error) {
				if row == members/2 {
					runtime.GC()
					runtime.ReadMemStats(&during)
					heap = max(heap, during.HeapAlloc-min(before.HeapAlloc, during.HeapAlloc))
				}
				row++
				return named(row, row, of.name), row <= members, nil
			}})
			if err != nil || done.List.Members != members {
				b.Fatalf("%d members, error %v", done.List.Members, err)
			}
			took[i] += time.Since(started)
		}
		b.StopTimer()
		if err := s.DeleteList(b.Context(), list); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(0, "ns/op")
	for i, name := range []string{"s/100k-added", "s/100k-unchanged", "s/100k-changed"} {
		each := (took[i] / time.Duration(b.N)).Seconds()
		b.ReportMetric(each, name)
		if each > 10 {
			b.Errorf("%.1f %s: must be 10 at most", each, name)
		}
	}
	b.ReportMetric(float64(heap)/(1<<20), "MB-heap")
}
