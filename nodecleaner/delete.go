package nodecleaner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/atomicfile"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

const (
	deleteTries   = 3   // against a Node that is being updated meanwhile
	keptManifests = 200 // of deleted Nodes
)

// deleteOne is rule D: the Node is read live, looked at again, kept as a file and
// deleted only as the very object that was looked at.
func (s *Service) deleteOne(ctx context.Context, d Deletion) error {
	entry := s.log.WithFields(logrus.Fields{"node": d.Node, "instance": d.ProviderID, "group": d.Group, "rule": d.Rule, "why": d.Why})
	if s.cfg.Mode == ModeObserve {
		if key := "would " + d.Rule; s.told[d.Node] != key {
			entry.Warn("node would be deleted (mode observe)")
			s.event(d.Node, d.UID, corev1.EventTypeNormal, "NodeWouldBeDeleted", d.Rule+": "+d.Why)
		}
		s.told[d.Node] = "would " + d.Rule
		return nil
	}
	nodes := s.deps.Client.CoreV1().Nodes()
	for range deleteTries {
		live, err := nodes.Get(ctx, string(d.Node), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("delete node %s: %w", d.Node, err)
		}
		if why := changed(live, d); why != "" {
			entry.WithField("why", why).Info("node is kept after all")
			return nil
		}
		if err := s.keep(live); err != nil {
			return fmt.Errorf("delete node %s: keep its manifest: %w", d.Node, err)
		}
		uid := types.UID(d.UID)
		err = nodes.Delete(ctx, string(d.Node), metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &live.ResourceVersion}})
		switch {
		case err == nil, apierrors.IsNotFound(err):
			entry.Info("node deleted")
			s.event(d.Node, d.UID, corev1.EventTypeNormal, "NodeDeleted", d.Rule+": "+d.Why)
			s.count("nodecleaner_deleted_total", "rule", d.Rule)
			return nil
		case !apierrors.IsConflict(err):
			return fmt.Errorf("delete node %s: %w", d.Node, err)
		}
	}
	return fmt.Errorf("delete node %s: it changed %d times meanwhile", d.Node, deleteTries)
}

// changed tells why the live Node is not the one that was decided on.
func changed(live *corev1.Node, d Deletion) string {
	n := toNode(live)
	switch {
	case n.UID != d.UID:
		return "D1: it is another Node of the same name"
	case n.ProviderID != d.ProviderID:
		return "D2: its provider ID changed"
	case n.Ready == cluster.StatusTrue:
		return "D3: it is Ready again"
	case n.Annotations[cluster.AnnotationKeep] != "":
		return "E3: it is annotated to be kept"
	case n.ControlPlane:
		return "E1: it is of the control plane"
	}
	return ""
}

func (s *Service) event(node cluster.NodeName, uid cluster.UID, kind, reason, text string) {
	if s.deps.Events == nil {
		return
	}
	if uid == "" {
		uid = cluster.UID(node)
	}
	s.deps.Events.Event(&corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: string(node), UID: types.UID(uid)}, kind, reason, text)
}

// keep writes the Node's manifest, so that an operator can bring it back.
func (s *Service) keep(n *corev1.Node) error {
	if s.deps.StateDir == "" {
		return nil
	}
	n = n.DeepCopy()
	n.APIVersion, n.Kind, n.ManagedFields = "v1", "Node", nil
	data, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Join(s.deps.StateDir, "nodes")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if _, err := atomicfile.Write(filepath.Join(dir, n.Name+"-"+string(n.UID)+".json"), append(data, '\n'), 0o600); err != nil {
		return err
	}
	return prune(dir, keptManifests)
}

// prune keeps the newest files of dir.
func prune(dir string, most int) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) <= most {
		return err
	}
	type aged struct {
		name string
		at   time.Time
	}
	var files []aged
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() {
			files = append(files, aged{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b aged) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.name, b.name)) })
	var errs []error
	for _, f := range files[min(most, len(files)):] {
		if err := os.Remove(filepath.Join(dir, f.name)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// saved is the state file.
type saved struct {
	Version int    `json:"version"`
	Memory  Memory `json:"memory"`
}

const (
	savedVersion = 1
	saveEvery    = 5 * time.Minute  // while nothing is watched
	saveWatched  = 10 * time.Second // while something is
)

func (s *Service) path() string { return filepath.Join(s.deps.StateDir, "nodecleaner.json") }

// save writes the memory now and then; what a crash loses only costs time.
func (s *Service) save(now time.Time, always bool) {
	every := saveEvery
	if len(s.memory.Watch) > 0 {
		every = saveWatched
	}
	if s.deps.StateDir == "" || !always && now.Sub(s.savedAt) < every {
		return
	}
	s.savedAt = now
	data, err := json.Marshal(saved{Version: savedVersion, Memory: s.memory})
	if err == nil {
		err = os.MkdirAll(s.deps.StateDir, 0o700)
	}
	if err == nil {
		_, err = atomicfile.Write(s.path(), append(data, '\n'), 0o600)
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != s.saveError && err != nil {
		s.log.WithField("why", text).Warn("the ledger of instances is not saved: a restart will wait longer before it deletes")
	}
	s.saveError = text
}

// load reads the memory. A torn or foreign file is set aside and reported. After a
// longer absence only the ledger is believed: what the Nodes did meanwhile is not
// known.
func (s *Service) load() Memory {
	if s.deps.StateDir == "" {
		return Memory{}
	}
	data, err := os.ReadFile(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return Memory{}
	}
	var file saved
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err == nil && file.Version != savedVersion {
		err = fmt.Errorf("version is %d, not %d", file.Version, savedVersion)
	}
	if err != nil {
		s.log.WithError(err).Warn("the ledger of instances cannot be read: it is set aside and begun anew")
		if err := os.Rename(s.path(), s.path()+".bad"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.log.WithError(err).Warn("the ledger of instances cannot be set aside")
		}
		return Memory{}
	}
	m := file.Memory
	if time.Since(m.LastRound) > silence {
		m.Watch = nil
	}
	m.LastRound = time.Time{}
	return m
}
