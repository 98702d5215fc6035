package agent

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

// reloader takes changed settings into the running agent: groups.yaml and the log level. All
// else takes a restart, which is safe at any moment; it says so by name.
type reloader struct {
	mu     sync.Mutex
	log    *logrus.Logger
	env    *config.EnvSeen
	look   func()        // at groups.yaml
	fault  func() string // of groups.yaml
	groups string        // its path
}

// reload returns what is in force now, and an error that names everything that is not.
func (r *reloader) reload() ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var said []string
	var errs []error
	r.look()
	if fault := r.fault(); fault != "" {
		errs = append(errs, errors.New(fault), fmt.Errorf("the last good %s stays in force", r.groups))
	} else {
		said = append(said, r.groups+" is in force")
	}
	level, others, err := r.env.Changes()
	if err != nil {
		errs = append(errs, err)
	}
	if parsed, bad := logrus.ParseLevel(level); level != "" && bad == nil {
		r.log.SetLevel(parsed)
		said = append(said, "the log level is "+parsed.String())
	}
	if len(others) > 0 {
		errs = append(errs, fmt.Errorf("%s: a change takes a restart, which is safe at any moment: systemctl restart autoscaler-agent", strings.Join(others, ", ")))
	}
	return said, errors.Join(errs...)
}

// tell reloads and writes the result to the journal.
func (r *reloader) tell() ([]string, error) {
	said, err := r.reload()
	log := r.log.WithField("service", "agent")
	for _, text := range said {
		log.Info("reload: " + text)
	}
	for _, e := range config.Flatten(err) {
		log.Error("reload: " + e.Error())
	}
	return said, err
}

// onHangup reloads at SIGHUP until ctx ends, and speaks the protocol of Type=notify-reload
// (systemd 253) about it.
func (r *reloader) onHangup(ctx context.Context) {
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
				_, _ = r.tell()                                                                             // it is in the journal
				_, _ = daemon.SdNotify(false, daemon.SdNotifyReady)
			}
		}
	}()
}
