package store

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
)

func (w *Store) PutDaemonSet(d *appsv1.DaemonSet) Urgency {
	class := convert.DaemonSetClass(d, w.schedulers)
	row := cluster.DaemonSet{Key: cluster.PodKey(d.Namespace + "/" + d.Name), UID: cluster.UID(d.UID)}
	w.mu.Lock()
	defer w.mu.Unlock()
	row.Class = w.intern(class)
	if old, had := w.daemonSets.get(row.Key); had {
		w.classes.release(old.Class)
		if old == row {
			return Never
		}
	}
	w.daemonSets.put(row.Key, row)
	return Later
}

func (w *Store) DeleteDaemonSet(key cluster.PodKey) Urgency {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old, had := w.daemonSets.get(key); had {
		w.classes.release(old.Class)
		w.daemonSets.delete(key)
	}
	return Later
}
