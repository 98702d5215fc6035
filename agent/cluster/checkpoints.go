package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Checkpoint is a share of a group at which its rollout waits.
type Checkpoint struct {
	Percent int           `json:"percent"`
	Wait    time.Duration `json:"wait"`
}

// Checkpoints are written as PERCENT%:DURATION, such as 10%:1h,50%:4h. Sorted.
type Checkpoints []Checkpoint

// Decode parses the list; envconfig calls it.
func (l *Checkpoints) Decode(value string) error {
	*l = nil
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		share, wait, _ := strings.Cut(item, "%:")
		percent, err1 := strconv.Atoi(share)
		d, err2 := time.ParseDuration(wait)
		if err1 != nil || err2 != nil || percent < 1 || percent > 99 || d < time.Minute || d > 8760*time.Hour {
			return fmt.Errorf("%q is no checkpoint: write a share from 1%% to 99%% and a time from 1m to 8760h, for example 10%%:1h,50%%:4h", item)
		}
		if slices.ContainsFunc(*l, func(c Checkpoint) bool { return c.Percent == percent }) {
			return fmt.Errorf("%d%% stands twice", percent)
		}
		*l = append(*l, Checkpoint{percent, d})
	}
	slices.SortFunc(*l, func(a, b Checkpoint) int { return a.Percent - b.Percent })
	return nil
}
