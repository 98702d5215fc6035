// Package supervise runs the agent's services and speaks to systemd about them: READY=1,
// STATUS=, WATCHDOG=1, STOPPING=1 (sd_notify(3)). The watchdog is fed only while no
// service is late with its heartbeat. WaitForSystemd keeps a process that has failed
// from ending so soon that systemd gives the unit up.
//
// It refuses to restart a service inside the process (systemd restarts the whole), and to
// know what a service does.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/autoscaler-agent/autoscaler-agent/internal/heartbeat"
)

// Service is one loop of the agent. Run works until its context ends and calls beat
// after each round from the goroutine that worked. It returns an error only when
// the process should be restarted.
type Service struct {
	Name   string
	Budget time.Duration // the longest time between two beats
	Run    func(ctx context.Context, beat func()) error
}

// Supervisor runs services and tells the service manager about them.
type Supervisor struct {
	Log        *logrus.Entry
	Heartbeats *heartbeat.Monitor
	// Notify sends one sd_notify state; it must not block.
	Notify func(state string)
	// Watchdog is WatchdogSec of the unit; 0 when there is none.
	Watchdog time.Duration
	// Ready blocks until the caches hold the cluster.
	Ready func(context.Context) error
	// ReadyWithin is when READY=1 is sent although Ready still waits, so that an API
	// server that is down does not make the start fail.
	ReadyWithin time.Duration
	// Status is the STATUS= line while nobody is late.
	Status func() string
}

// Run starts services once Ready returns, and returns when ctx ended and all of
// them have stopped, or with the first one's error. A service that returns nil
// while ctx lives is an error too. before are services that Ready depends on; they
// start at once and end last: the Lease must not be given to another agent while a
// service of this one still finishes a write.
func (s Supervisor) Run(ctx context.Context, before, services []Service) error {
	group, ctx := errgroup.WithContext(ctx)
	stopping := context.AfterFunc(ctx, func() { s.Notify("STOPPING=1") })
	defer stopping()
	ground, release := context.WithCancel(context.WithoutCancel(ctx))
	for _, svc := range before {
		beat := s.Heartbeats.Register(svc.Name, svc.Budget)
		group.Go(func() error { return keep(ctx, ground, svc, beat) })
	}
	group.Go(func() error { return s.feed(ctx) })
	group.Go(func() error {
		// An error of ours ends ctx a moment later; then the ground goes too.
		defer func() { _ = context.AfterFunc(ctx, release) }()
		if err := s.waitReady(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		var working sync.WaitGroup
		for _, svc := range services {
			beat := s.Heartbeats.Register(svc.Name, svc.Budget)
			working.Add(1)
			group.Go(func() error {
				defer working.Done()
				return keep(ctx, ctx, svc, beat)
			})
		}
		working.Wait()
		return nil
	})
	err := group.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// keep runs svc until life ends; ctx is the agent's.
func keep(ctx, life context.Context, svc Service, beat func()) error {
	err := svc.Run(life, beat)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("service %s: %w", svc.Name, err)
	}
	return fmt.Errorf("service %s ended by itself", svc.Name)
}

func (s Supervisor) waitReady(ctx context.Context) error {
	s.Notify("STATUS=waiting for the API server's lists")
	late := time.AfterFunc(s.ReadyWithin, func() {
		s.Log.Warnf("the API server has not told its lists within %s; the services start when it has", s.ReadyWithin)
		s.Notify("READY=1\nSTATUS=degraded: waiting for the API server's lists")
	})
	err := s.Ready(ctx)
	late.Stop()
	if err != nil {
		return err
	}
	s.Notify("READY=1\nSTATUS=" + s.Status())
	return nil
}

// feed sends WATCHDOG=1 twice per watchdog period while nobody is late, and STATUS=
// when it changed.
func (s Supervisor) feed(ctx context.Context) error {
	period := s.Watchdog / 2
	if period <= 0 || period > 5*time.Second {
		period = 5 * time.Second // also the pace of STATUS=
	}
	tick := time.NewTicker(period)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		status := s.Status()
		if late := s.Heartbeats.Late(time.Now()); len(late) > 0 {
			names := make([]string, len(late))
			for i, l := range late {
				names[i] = l.String()
			}
			status = "late: " + strings.Join(names, "; ")
			if status != said && !strings.HasPrefix(said, "late: ") {
				s.Log.Error(status + "; the watchdog is not fed")
			}
		} else if s.Watchdog > 0 {
			s.Notify("WATCHDOG=1")
		}
		if status != said {
			said = status
			s.Notify("STATUS=" + status)
		}
	}
}
