package nodecleaner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// Kept is one manifest of a deleted Node.
type Kept struct {
	Name       string    `json:"name"`
	UID        string    `json:"uid"`
	ProviderID string    `json:"providerID,omitempty"`
	DeletedAt  time.Time `json:"deletedAt"`
	Why        string    `json:"why,omitempty"` // with its rule
	File       string    `json:"file"`

	node *corev1.Node
}

// Manifests lists the manifests in a state directory, the newest first. A file that
// cannot be read is an error and hides none of the others.
func Manifests(stateDir string) ([]Kept, error) {
	entries, err := os.ReadDir(manifestDir(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list kept nodes: %w", err)
	}
	var out []Kept
	var errs []error
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		k, err := readKept(filepath.Join(manifestDir(stateDir), e.Name()))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b Kept) int {
		return cmp.Or(b.DeletedAt.Compare(a.DeletedAt), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return out, errors.Join(errs...)
}

func readKept(file string) (Kept, error) {
	var n corev1.Node
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &n)
	}
	if err == nil && n.Name == "" {
		err = errors.New("it holds no Node")
	}
	if err != nil {
		return Kept{}, fmt.Errorf("read kept node %s: %w", file, err)
	}
	if n.Labels[cluster.LabelNoLoadBalancer] == cluster.LabelOurs {
		delete(n.Labels, cluster.LabelNoLoadBalancer)
	}
	k := Kept{Name: n.Name, UID: string(n.UID), ProviderID: n.Spec.ProviderID, File: file, node: &n}
	at, why, _ := strings.Cut(n.Annotations[annotationDeleted], " ")
	if k.DeletedAt, err = time.Parse(time.RFC3339, at); err == nil {
		k.Why = why
	} else if info, err := os.Stat(file); err == nil { // written by an older version
		k.DeletedAt = info.ModTime()
	}
	return k, nil
}

// Restoring are the options of Restore.
type Restoring struct {
	Client *kube.Client
	// Lives asks the cloud whether the Node's instance exists, and returns the reason if not.
	// It is called only if there is no such Node.
	Lives func(ctx context.Context, providerID string) (bool, string)
	// Force creates a Node although its instance is not known to live. The rules may delete
	// it again.
	Force bool
	// DryRun changes nothing and reports the changes that would be made.
	DryRun bool
}

// Restored is the result of Restore.
type Restored struct {
	Node   string `json:"node"`
	Action string `json:"action"` // "created", "updated" or "unchanged"
	DryRun bool   `json:"dryRun,omitempty"`
	// The restored labels, annotations and taints, by key.
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
	Taints      []string `json:"taints,omitempty"`
	Cordoned    bool     `json:"cordoned,omitempty"`
}

// Restore brings back the labels, annotations, taints and the cordon that operators had put
// on a Node. If there is a Node of that name again, they are added to it; otherwise a fresh
// Node object is created. Restore refuses to create the Node of a machine that is gone.
func Restore(ctx context.Context, r Restoring, k Kept) (Restored, error) {
	nodes := r.Client.CoreV1().Nodes()
	for range deleteTries {
		live, err := nodes.Get(ctx, k.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return r.create(ctx, k)
		case err != nil:
			return Restored{}, fmt.Errorf("restore node %s: %w", k.Name, err)
		case string(live.UID) == k.UID:
			return Restored{}, fmt.Errorf("restore node %s: it was never deleted (or its finalizers still keep it)", k.Name)
		}
		done := lay(live, k.node)
		done.DryRun = r.DryRun
		if done.Action == "unchanged" || r.DryRun {
			return done, nil
		}
		if _, err = nodes.Update(ctx, live, metav1.UpdateOptions{}); err == nil {
			return done, nil
		}
		if !apierrors.IsConflict(err) {
			return Restored{}, fmt.Errorf("restore node %s: %w", k.Name, err)
		}
	}
	return Restored{}, fmt.Errorf("restore node %s: it changed %d times meanwhile", k.Name, deleteTries)
}

// create makes a fresh Node object for a machine that lives. Its kubelet uses the object;
// without one a kubelet registers again only after a restart (kubernetes/kubernetes#71398).
func (r Restoring) create(ctx context.Context, k Kept) (Restored, error) {
	if !r.Force {
		if lives, why := r.Lives(ctx, k.ProviderID); !lives {
			return Restored{}, fmt.Errorf("restore node %s: refused: %s (--force makes the Node object all the same)", k.Name, why)
		}
	}
	old := k.node
	fresh := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: old.Name, Labels: maps.Clone(old.Labels), Annotations: operators(old.Annotations, false)},
		Spec: corev1.NodeSpec{ProviderID: old.Spec.ProviderID, Unschedulable: cordonedByOperator(old)}}
	fresh.Spec.Taints = operatorTaints(old.Spec.Taints)
	if free, err := r.rangesFree(ctx, old.Spec.PodCIDRs); err != nil {
		return Restored{}, fmt.Errorf("restore node %s: %w", k.Name, err)
	} else if free {
		fresh.Spec.PodCIDR, fresh.Spec.PodCIDRs = old.Spec.PodCIDR, old.Spec.PodCIDRs // what its pods have their addresses from
	}
	done := Restored{Node: k.Name, Action: "created", DryRun: r.DryRun, Labels: keys(fresh.Labels), Annotations: keys(fresh.Annotations),
		Taints: taintKeys(fresh.Spec.Taints), Cordoned: fresh.Spec.Unschedulable}
	if r.DryRun {
		return done, nil
	}
	if _, err := r.Client.CoreV1().Nodes().Create(ctx, fresh, metav1.CreateOptions{}); err != nil {
		return Restored{}, fmt.Errorf("restore node %s: %w", k.Name, err)
	}
	return done, nil
}

// rangesFree reports that no other Node has one of the pod ranges.
func (r Restoring) rangesFree(ctx context.Context, ranges []string) (bool, error) {
	if len(ranges) == 0 {
		return false, nil
	}
	list, err := r.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for _, n := range list.Items {
		if slices.ContainsFunc(n.Spec.PodCIDRs, func(c string) bool { return slices.Contains(ranges, c) }) {
			return false, nil
		}
	}
	return true, nil
}

// lay copies labels, annotations, taints and the cordon of operators from old to live, which may be
// another machine: entries of kubelets, clouds and network plug-ins stay as live has them.
func lay(live, old *corev1.Node) Restored {
	done := Restored{Node: live.Name, Action: "unchanged"}
	put := func(on *map[string]string, key, value string, names *[]string) {
		if was, there := (*on)[key]; there && was == value {
			return
		}
		if *on == nil {
			*on = map[string]string{}
		}
		(*on)[key] = value
		*names = append(*names, key)
	}
	for _, key := range keys(old.Labels) {
		if !machineLabel(key) {
			put(&live.Labels, key, old.Labels[key], &done.Labels)
		}
	}
	wanted := operators(old.Annotations, true)
	for _, key := range keys(wanted) {
		put(&live.Annotations, key, wanted[key], &done.Annotations)
	}
	for _, t := range operatorTaints(old.Spec.Taints) {
		if !slices.ContainsFunc(live.Spec.Taints, func(o corev1.Taint) bool { return o.MatchTaint(&t) && o.Value == t.Value }) {
			live.Spec.Taints = slices.DeleteFunc(live.Spec.Taints, func(o corev1.Taint) bool { return o.MatchTaint(&t) })
			live.Spec.Taints = append(live.Spec.Taints, t)
			done.Taints = append(done.Taints, t.Key)
		}
	}
	if cordonedByOperator(old) && !live.Spec.Unschedulable {
		live.Spec.Unschedulable, done.Cordoned = true, true
	}
	if done.Cordoned || len(done.Labels)+len(done.Annotations)+len(done.Taints) > 0 {
		done.Action = "updated"
	}
	return done
}

// machineLabel reports whether a kubelet or a cloud writes this label about its machine.
func machineLabel(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	switch key {
	case corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelInstanceTypeStable, "node.kubernetes.io/windows-build":
		return true
	}
	return prefix == "beta.kubernetes.io" || prefix == "topology.kubernetes.io" || prefix == "failure-domain.beta.kubernetes.io" || strings.HasPrefix(prefix, "topology.")
}

// machineAnnotations are prefixes of annotations that describe one machine.
var machineAnnotations = []string{"node.alpha.kubernetes.io/", "volumes.kubernetes.io/", "csi.volume.kubernetes.io/", "kubeadm.alpha.kubernetes.io/",
	"alpha.kubernetes.io/", "flannel.alpha.coreos.com/", "projectcalico.org/", "network.cilium.io/", "io.cilium.", "k8s.ovn.org/", "cluster.x-k8s.io/"}

// operators returns the annotations to restore: without the agent's own notes of the Node's
// end and, on another machine, without descriptions of the old one.
func operators(all map[string]string, elsewhere bool) map[string]string {
	out := map[string]string{}
	for key, value := range all {
		switch key {
		case annotationDeleted, cluster.AnnotationCordoned, cluster.AnnotationRequested, cluster.AnnotationReplace, cluster.AnnotationGroup, cluster.AnnotationBoot:
			continue
		}
		if strings.HasPrefix(key, cluster.AnnotationDelay) ||
			elsewhere && slices.ContainsFunc(machineAnnotations, func(p string) bool { return strings.HasPrefix(key, p) }) {
			continue
		}
		out[key] = value
	}
	return out
}

// operatorTaints leaves out taints that controllers write because of the Node's state.
func operatorTaints(all []corev1.Taint) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range all {
		prefix, _, _ := strings.Cut(t.Key, "/")
		if prefix == "node.kubernetes.io" || prefix == "node.cloudprovider.kubernetes.io" || t.Key == cluster.TaintToBeDeleted || t.Key == cluster.TaintDeletionCandidate {
			continue
		}
		t.TimeAdded = nil
		out = append(out, t)
	}
	return out
}

// cordonedByOperator reports whether the Node was cordoned, and not by this agent before its
// removal.
func cordonedByOperator(n *corev1.Node) bool {
	_, ours := n.Annotations[cluster.AnnotationCordoned]
	return n.Spec.Unschedulable && !ours
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func taintKeys(list []corev1.Taint) []string {
	var out []string
	for _, t := range list {
		out = append(out, t.Key)
	}
	return out
}
