package v1

import (
	"crypto/sha256"
	"encoding/binary"
	"runtime"
	"testing"
)

func openTwins(t testing.TB) *twins {
	t.Helper()
	set := newTwins()
	t.Cleanup(func() { set.Close() })
	return set
}

func add(t testing.TB, set *twins, key twinKey) bool {
	t.Helper()
	before, err := set.add(key)
	if err != nil {
		t.Fatal(err)
	}
	return before
}

// sumOf is spread as the keys of rows are.
func sumOf(n uint64) (key twinKey) {
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64(nil, n))
	copy(key[:], sum[:])
	return key
}

func TestTwinsAreKnownWhateverTheirPlaceInTheTable(t *testing.T) {
	keys := map[string]func(uint64) twinKey{
		"spread": sumOf,
		"all in the last bucket and those after it": func(n uint64) (key twinKey) {
			binary.LittleEndian.PutUint32(key[:], twinBuckets-1)
			binary.LittleEndian.PutUint64(key[8:], n+1)
			return key
		},
	}
	for name, key := range keys {
		t.Run(name, func(t *testing.T) {
			const n = 200
			set := openTwins(t)
			if err := set.moveToFile(); err != nil {
				t.Fatal(err)
			}
			for i := range uint64(n) {
				if add(t, set, key(i)) {
					t.Errorf("key %d is a twin of none", i)
				}
			}
			for i := range uint64(2 * n) {
				if got, want := add(t, set, key(i)), i < n; got != want {
					t.Errorf("key %d was there before: %v, want %v", i, got, want)
				}
			}
		})
	}
}

func TestTwinsAreKnownOnDiskThatWereAddedInMemory(t *testing.T) {
	set := openTwins(t)
	for i := range uint64(twinsInMemory + 100) {
		if add(t, set, sumOf(i)) || !add(t, set, sumOf(i)) || !add(t, set, sumOf(i/2)) {
			t.Fatalf("key %d, which is the %dth, is not known from the second time on", i, i+1)
		}
		if onDisk := set.file != nil; onDisk != (i >= twinsInMemory) {
			t.Fatalf("with %d keys the file is there: %v", i+1, onDisk)
		}
	}
}

func TestManyTwinsTakeNoMemory(t *testing.T) {
	set := openTwins(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range uint64(100_000) {
		add(t, set, sumOf(i))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > before.HeapAlloc+64<<10 {
		t.Errorf("100,000 keys take %d bytes of memory", after.HeapAlloc-before.HeapAlloc)
	}
}

// BenchmarkTwins is what one row of a million costs.
func BenchmarkTwins(b *testing.B) {
	set := openTwins(b)
	n := uint64(0)
	for b.Loop() {
		if n++; n > MaxRecipients {
			b.StopTimer()
			set, n = openTwins(b), 1
			b.StartTimer()
		}
		add(b, set, sumOf(n))
	}
}
