package nodecleaner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

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

// manifestMost is far more than the largest Node has in bytes.
const manifestMost = 4 << 20

// readKept reads one manifest. The agent's user owns the directory, and an administrator restores: the file is judged as
// a stranger's.
func readKept(file string) (Kept, error) {
	var n corev1.Node
	data, err := readRegular(file, manifestMost)
	if err == nil {
		err = json.Unmarshal(data, &n)
	}
	if err == nil {
		err = wellFormed(&n)
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
		k.Why = strings.Map(func(r rune) rune {
			if !unicode.IsPrint(r) {
				return '?' // for the terminal of the administrator
			}
			return r
		}, why)
	} else if info, err := os.Stat(file); err == nil { // written by an older version
		k.DeletedAt = info.ModTime()
	}
	return k, nil
}

// readRegular reads a regular file of bounded size: a pipe would never end.
func readRegular(file string, most int64) ([]byte, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("it is no regular file of at most %d bytes", most)
	}
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// wellFormed checks each name of a manifest that is printed or restored.
func wellFormed(n *corev1.Node) error {
	if n.Name == "" {
		return errors.New("it holds no Node")
	}
	if errs := validation.IsDNS1123Subdomain(n.Name); len(errs) > 0 {
		return fmt.Errorf("%q is no name of a Node", n.Name)
	}
	if errs := validation.IsDNS1123Subdomain(string(n.UID)); len(errs) > 0 && n.UID != "" {
		return fmt.Errorf("%q is no UID", n.UID)
	}
	for _, key := range slices.Concat(keys(n.Labels), keys(n.Annotations), taintKeys(n.Spec.Taints)) {
		if errs := validation.IsQualifiedName(strings.ToLower(key)); len(errs) > 0 {
			return fmt.Errorf("%q is no key of a label, an annotation or a taint", key)
		}
	}
	return nil
}

// Restoring are the options of Restore.
type Restoring struct {
	Client *kube.Client
	// Lives asks the cloud whether the Node's instance exists under the Node's name, and returns the reason if not.
	// It is called only if there is no such Node.
	Lives func(ctx context.Context, providerID, node string) (bool, string)
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
	// Refused are the labels and taints that a file of the agent's user gives no Node, and LeftOut the annotations and ranges
	// that others write.
	Refused []string `json:"refused,omitempty"`
	LeftOut []string `json:"leftOut,omitempty"`
}

// Restore brings back the labels, the agent's annotations, the taints and the cordon that operators had put
// on a Node. If there is a Node of that name again, they are added to it; otherwise a fresh
// Node object is created. Restore refuses to create the Node of a machine that is gone, and to touch one of the control plane.
// A thief of the agent's user can write the manifests: what no kubelet may give its own Node they do not give it either.
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
		case cluster.IsControlPlane(live.Labels):
			return Restored{}, fmt.Errorf("restore node %s: refused: it is a Node of the control plane, which the nodecleaner never deletes: %s is not its manifest", k.Name, k.File)
		}
		done := lay(live, k.node, false)
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
		if lives, why := r.Lives(ctx, k.ProviderID, k.Name); !lives {
			return Restored{}, fmt.Errorf("restore node %s: refused: %s (--force makes the Node object all the same)", k.Name, why)
		}
	}
	old := k.node
	fresh := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: old.Name}, Spec: corev1.NodeSpec{ProviderID: old.Spec.ProviderID}}
	done := lay(fresh, old, true)
	done.Action, done.DryRun = "created", r.DryRun
	if free, err := r.rangesFree(ctx, old.Spec.PodCIDRs); err != nil {
		return Restored{}, fmt.Errorf("restore node %s: %w", k.Name, err)
	} else if free {
		fresh.Spec.PodCIDR, fresh.Spec.PodCIDRs = old.Spec.PodCIDRs[0], old.Spec.PodCIDRs // what its pods have their addresses from
	} else if len(old.Spec.PodCIDRs) > 0 {
		done.LeftOut = append(done.LeftOut, "spec.podCIDRs")
	}
	if r.DryRun {
		return done, nil
	}
	if _, err := r.Client.CoreV1().Nodes().Create(ctx, fresh, metav1.CreateOptions{}); err != nil {
		return Restored{}, fmt.Errorf("restore node %s: %w", k.Name, err)
	}
	return done, nil
}

// rangesFree reports that the pod ranges are within kubeadm's pod network and touch no other Node's range.
func (r Restoring) rangesFree(ctx context.Context, ranges []string) (bool, error) {
	var wanted []netip.Prefix
	for _, text := range ranges {
		p, err := netip.ParsePrefix(text)
		if err != nil || p != p.Masked() {
			return false, nil
		}
		wanted = append(wanted, p)
	}
	networks, err := r.podNetworks(ctx)
	if len(wanted) == 0 || err != nil {
		return false, err
	}
	for _, p := range wanted {
		if !slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Bits() < p.Bits() && n.Contains(p.Addr()) }) {
			return false, nil
		}
	}
	list, err := r.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for _, n := range list.Items {
		for _, text := range n.Spec.PodCIDRs {
			taken, err := netip.ParsePrefix(text)
			if err != nil || slices.ContainsFunc(wanted, taken.Overlaps) {
				return false, nil
			}
		}
	}
	return true, nil
}

// podNetworks are those that kubeadm made the cluster with; none: another program made it.
func (r Restoring) podNetworks(ctx context.Context) (out []netip.Prefix, err error) {
	m, err := r.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var c struct {
		Networking struct {
			PodSubnet string `json:"podSubnet"`
		} `json:"networking"`
	}
	if err := yaml.Unmarshal([]byte(m.Data["ClusterConfiguration"]), &c); err != nil {
		return nil, fmt.Errorf("read ConfigMap kube-system/kubeadm-config: %w", err)
	}
	for text := range strings.SplitSeq(c.Networking.PodSubnet, ",") {
		if p, err := netip.ParsePrefix(strings.TrimSpace(text)); err == nil {
			out = append(out, p)
		}
	}
	return out, nil
}

// lay copies labels, annotations, taints and the cordon of operators from old to live, which may be
// another machine: what a kubelet or a cloud says of its machine stays as live has it, unless live is fresh.
func lay(live, old *corev1.Node, fresh bool) Restored {
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
		switch {
		case !kubeletMay(key):
			done.Refused = append(done.Refused, "label "+key)
		case fresh || !machineLabel(key):
			put(&live.Labels, key, old.Labels[key], &done.Labels)
		}
	}
	for _, key := range keys(old.Annotations) {
		switch {
		case operatorsMark(key):
			put(&live.Annotations, key, old.Annotations[key], &done.Annotations)
		case !strings.HasPrefix(key, "autoscaler-agent/"): // the agent's own notes of the Node's end
			done.LeftOut = append(done.LeftOut, "annotation "+key)
		}
	}
	for _, t := range old.Spec.Taints {
		switch prefix, _, _ := strings.Cut(t.Key, "/"); {
		case prefix == "node.kubernetes.io", prefix == "node.cloudprovider.kubernetes.io", t.Key == cluster.TaintToBeDeleted, t.Key == cluster.TaintDeletionCandidate:
			continue // controllers write them because of the Node's state
		case ofKubernetes(t.Key):
			done.Refused = append(done.Refused, "taint "+t.Key)
			continue
		}
		t.TimeAdded = nil
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

// ofKubernetes reports whether a key is in Kubernetes' own namespaces, which mean something to it and its add-ons.
func ofKubernetes(key string) bool {
	space, _, qualified := strings.Cut(key, "/")
	return qualified && slices.ContainsFunc([]string{"kubernetes.io", "k8s.io"}, func(s string) bool { return within(space, s) })
}

func within(space, of string) bool { return space == of || strings.HasSuffix(space, "."+of) }

// kubeletMay is what the NodeRestriction admission plug-in lets a kubelet write on its own Node (well_known_labels.go in
// k8s.io/kubelet).
func kubeletMay(label string) bool {
	space, _, _ := strings.Cut(label, "/")
	return !ofKubernetes(label) || machineLabel(label) || within(space, "kubelet.kubernetes.io") || within(space, "node.kubernetes.io")
}

// machineLabel reports whether a kubelet or a cloud writes this label about its machine.
func machineLabel(key string) bool {
	switch key {
	case corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelInstanceTypeStable, corev1.LabelWindowsBuild,
		"beta.kubernetes.io/os", "beta.kubernetes.io/arch", corev1.LabelInstanceType, corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
		corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion:
		return true
	}
	return strings.HasPrefix(key, "topology.") && !ofKubernetes(key)
}

// operatorsMark reports whether an annotation is one that operators set for the agent. Others are a kubelet's, a network
// plug-in's or a cloud's: where a Node's pods are reached would be the file's to say.
func operatorsMark(key string) bool {
	return key != cluster.AnnotationRequested && slices.ContainsFunc(cluster.Marks, func(m cluster.Mark) bool {
		return m.Name == key && m.Kind == "annotation of a Node" && m.SetBy == "an operator"
	})
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
