package settings

import (
	"testing"

	"github.com/todoku/todoku/notify"
)

func TestAWorkflowCarriesWhatIsSentInTenSeconds(t *testing.T) {
	for name, tc := range map[string]struct {
		interval, size string
		batch, burst   int
	}{
		"slow enough for a workflow each":   {"50ms", "auto", 1, 500},
		"faster than Temporal starts them":  {"40ms", "auto", 250, 500},
		"as fast as most accounts get":      {"10ms", "auto", 1000, 500},
		"so fast that ten seconds are many": {"1ms", "auto", 2000, 500},
		"without pacing":                    {"0s", "auto", 2000, 500},
		"as somebody has chosen":            {"100ms", "300", 300, 300},
		"as somebody has chosen, unpaced":   {"0s", "1", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := LoadFrom(map[string]string{"SMS_SEND_INTERVAL": tc.interval, "BATCH_SHARD_SIZE": tc.size}, 0)
			if err != nil {
				t.Fatal(err)
			}
			if batch, burst := s.BatchShard(notify.SMS), s.ShardSize(); batch != tc.batch || burst != tc.burst {
				t.Errorf("%d of a batch and %d of a burst, want %d and %d", batch, burst, tc.batch, tc.burst)
			}
		})
	}
	for _, size := range []string{"0", "2001", "many"} {
		if _, err := LoadFrom(map[string]string{"BATCH_SHARD_SIZE": size}, 0); err == nil {
			t.Errorf("a size of %q was taken", size)
		}
	}
}
