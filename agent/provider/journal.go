package provider

import (
	"context"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Journal writes one entry per write of p (info when it went well, warning when
// not) and one per read that failed in part or whole, with the keys group,
// instance, took and kind. A read that goes well is a debug entry.
func Journal(p Provider, log *logrus.Entry) Provider { return journal{p, log} }

type journal struct {
	next Provider
	log  *logrus.Entry
}

func (j journal) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	start := time.Now()
	groups, err := j.next.Groups(ctx)
	log := j.log.WithField("took", time.Since(start))
	if err == nil {
		log.Debugf("read %d node groups", len(groups))
		return groups, nil
	}
	for _, e := range Errors(err) {
		entry := log
		if e.Group != "" {
			entry = entry.WithField("group", e.Group)
		}
		entry.WithField("kind", e.Kind.String()).Warn(e.Error())
	}
	if len(Errors(err)) == 0 {
		log.WithField("kind", Other.String()).Warn(err.Error())
	}
	return groups, err
}

func (j journal) Resize(ctx context.Context, id cluster.GroupID, from, to int) error {
	start := time.Now()
	err := j.next.Resize(ctx, id, from, to)
	log := j.log.WithFields(logrus.Fields{"group": id, "took": time.Since(start)})
	if err != nil {
		log.WithField("kind", KindOf(err).String()).Warn(err.Error())
		return err
	}
	log.Infof("target set from %d to %d", from, to)
	return nil
}

func (j journal) Delete(ctx context.Context, id cluster.GroupID, ids ...cluster.InstanceID) error {
	start := time.Now()
	err := j.next.Delete(ctx, id, ids...)
	log := j.log.WithFields(logrus.Fields{"group": id, "took": time.Since(start)})
	failed := map[cluster.InstanceID]bool{}
	whole := false // the whole call failed, no instance was reached
	for _, e := range Errors(err) {
		failed[e.Instance] = true
		whole = whole || e.Instance == ""
		entry := log
		if e.Instance != "" {
			entry = entry.WithField("instance", e.Instance)
		}
		entry.WithField("kind", e.Kind.String()).Warn(e.Error())
	}
	if whole || err != nil && len(failed) == 0 {
		if len(failed) == 0 {
			log.WithField("kind", Other.String()).Warn(strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		return err
	}
	for _, instance := range ids {
		if !failed[instance] {
			log.WithField("instance", instance).Info("instance is on its way out or gone")
		}
	}
	return err
}
