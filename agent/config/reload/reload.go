// Package reload takes changed settings into the running agent: groups.yaml and the log
// level, at SIGHUP and when POST /reload asks for it.
//
// It refuses to take any other setting, which it names: that takes a restart, which is safe at
// any moment.
package reload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
)

// Reloader reloads, one time after the other.
type Reloader struct {
	mu sync.Mutex

	Log    *logrus.Logger
	Env    *config.EnvSeen
	Look   func()        // at groups.yaml
	Fault  func() string // of groups.yaml
	Groups string        // its path
}

// reload returns what is in force now, and an error that names everything that is not.
func (r *Reloader) reload() ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var said []string
	var errs []error
	r.Look()
	if fault := r.Fault(); fault != "" {
		errs = append(errs, errors.New(fault), fmt.Errorf("the last good %s stays in force", r.Groups))
	} else {
		said = append(said, r.Groups+" is in force")
	}
	level, others, err := r.Env.Changes()
	if err != nil {
		errs = append(errs, err)
	}
	if parsed, bad := logrus.ParseLevel(level); level != "" && bad == nil {
		r.Log.SetLevel(parsed)
		said = append(said, "the log level is "+parsed.String())
	}
	if len(others) > 0 {
		errs = append(errs, fmt.Errorf("%s: a change takes a restart, which is safe at any moment: systemctl restart autoscaler-agent", strings.Join(others, ", ")))
	}
	return said, errors.Join(errs...)
}

// Tell reloads and writes the result to the journal.
func (r *Reloader) Tell() ([]string, error) {
	said, err := r.reload()
	log := r.Log.WithField("service", "agent")
	for _, text := range said {
		log.Info("reload: " + text)
	}
	for _, e := range config.Flatten(err) {
		log.Error("reload: " + e.Error())
	}
	return said, err
}

// OnHangup reloads at SIGHUP until ctx ends, and speaks the protocol of Type=notify-reload
// (systemd 253) about it.
func (r *Reloader) OnHangup(ctx context.Context) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangup)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
				_, _ = daemon.SdNotify(false, daemon.SdNotifyReloading+"\n"+daemon.SdNotifyMonotonicUsec()) // without systemd nobody waits
				_, _ = r.Tell()                                                                             // it is in the journal
				_, _ = daemon.SdNotify(false, daemon.SdNotifyReady)
			}
		}
	}()
}
