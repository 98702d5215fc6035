package report

import (
	"sync"

	"github.com/sirupsen/logrus"
)

// Changes logs a condition once when it starts or changes its words, and once when it
// ends. All methods are safe for concurrent use.
type Changes struct {
	log  *logrus.Entry
	mu   sync.Mutex
	last map[string]string // reason by subject
}

// NewChanges returns a change logger on which every subject is in order.
func NewChanges(log *logrus.Entry) *Changes { return &Changes{log: log, last: map[string]string{}} }

// Say states the condition of a subject: why it is in trouble, or "" when it is not. The
// first word of a trouble is a warning that begins with trouble; its end is logged as fine.
func (c *Changes) Say(subject, why, fine, trouble string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last[subject] == why {
		return
	}
	c.last[subject] = why
	if why == "" {
		c.log.Info(fine)
	} else {
		c.log.WithField("why", why).Warn(trouble + ": " + why)
	}
}
