package capi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type object = *unstructured.Unstructured

// world is what the controllers see in one look.
type world struct {
	deployments, sets, machines, pools []object
}

// look reads everything. Machines are read last, so that they are never older than the
// counts; with Lag they are seen that much late, as through a watch that lags.
func (c *Cloud) look(ctx context.Context) (w world, err error) {
	order := []struct {
		resource string
		to       *[]object
	}{{"machinedeployments", &w.deployments}, {"machinesets", &w.sets}, {"machinepools", &w.pools}, {"machines", &w.machines}}
	if c.Lag > 0 {
		slices.Reverse(order)
	}
	for i, o := range order {
		list, err := c.Resource(o.resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return w, err
		}
		for n := range list.Items {
			*o.to = append(*o.to, &list.Items[n])
		}
		if i == 0 && c.Lag > 0 {
			pause(ctx, c.Lag)
		}
	}
	return w, nil
}

func owner(o object, kind string) string {
	for _, r := range o.GetOwnerReferences() {
		if r.Kind == kind {
			return string(r.UID)
		}
	}
	return ""
}

func (w world) setsOf(d object) []object {
	var out []object
	for _, s := range w.sets {
		if owner(s, "MachineDeployment") == string(d.GetUID()) {
			out = append(out, s)
		}
	}
	return out
}

func (w world) machinesOf(kind string, s object) []object {
	var out []object
	for _, m := range w.machines {
		if owner(m, kind) == string(s.GetUID()) {
			out = append(out, m)
		}
	}
	return out
}

// noting collects the errors of one step. What somebody else has changed meanwhile is none:
// it is looked at again soon.
func (c *Cloud) noting(errs *[]error) func(error) {
	return func(err error) {
		switch {
		case err == nil:
		case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err):
			c.due(5 * time.Millisecond)
		default:
			*errs = append(*errs, err)
		}
	}
}

// reconcile lets every controller do one step. A conflict is no fault: the next step
// sees the newer object.
func (c *Cloud) reconcile(ctx context.Context) error {
	w, err := c.look(ctx)
	if err != nil {
		return err
	}
	c.told(c.judge(w))
	var errs []error
	note := c.noting(&errs)
	for _, d := range w.deployments {
		note(c.deployment(ctx, w, d))
	}
	for _, s := range w.sets {
		note(c.crew(ctx, w, s, "MachineSet"))
	}
	for _, p := range w.pools {
		note(c.crew(ctx, w, p, "MachinePool"))
		note(c.poolLists(ctx, w, p))
	}
	for _, m := range w.machines {
		note(c.machine(ctx, w, m))
	}
	c.orphans(w)
	return errors.Join(errs...)
}

func paused(o object) bool {
	_, ok := o.GetAnnotations()[Group+"/paused"]
	return ok
}

// deployment keeps one MachineSet for the template as it is now, and moves replicas to
// it from the older ones: one above the target at a time, none below.
func (c *Cloud) deployment(ctx context.Context, w world, d object) error {
	if d.GetDeletionTimestamp() != nil || paused(d) {
		return nil
	}
	template, _, _ := unstructured.NestedMap(d.Object, "spec", "template")
	raw, err := json.Marshal(template)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(raw)
	hash := hex.EncodeToString(sum[:3])
	var current object
	var old []object
	for _, s := range w.setsOf(d) {
		if s.GetLabels()["machine-template-hash"] == hash {
			current = s
		} else {
			old = append(old, s)
		}
	}
	want := replicas(d)
	if current == nil {
		n := want
		if len(old) > 0 {
			n = 1
		}
		return c.makeSet(ctx, d, template, hash, min(n, want))
	}
	sum2 := replicas(current)
	for _, s := range old {
		sum2 += replicas(s)
	}
	ready := 0
	for _, m := range w.machinesOf("MachineSet", current) {
		if str(m, "status", "phase") == "Running" {
			ready++
		}
	}
	if err := c.statusReplicas(ctx, w, d, "machinedeployments"); err != nil {
		return err
	}
	switch {
	case len(old) == 0:
		return c.scaleSet(ctx, current, want)
	case replicas(current) < want && sum2 <= want:
		return c.scaleSet(ctx, current, replicas(current)+1)
	}
	for _, s := range old {
		if replicas(s) > 0 && (sum2 > want && ready == replicas(current) || replicas(current) > want) {
			return c.scaleSet(ctx, s, replicas(s)-1)
		}
		if replicas(s) == 0 && len(w.machinesOf("MachineSet", s)) == 0 {
			return c.Resource("machinesets").Delete(ctx, s.GetName(), metav1.DeleteOptions{})
		}
	}
	return nil
}

func (c *Cloud) makeSet(ctx context.Context, d object, template map[string]any, hash string, n int) error {
	labels := d.GetLabels()
	labels["machine-template-hash"] = hash
	labels[c.Group+"/deployment-name"] = d.GetName()
	own, _, _ := unstructured.NestedStringMap(template, "metadata", "labels")
	own["machine-template-hash"], own[c.Group+"/deployment-name"] = hash, d.GetName()
	set(template, anyMap(own), "metadata", "labels")
	s := object(&unstructured.Unstructured{Object: map[string]any{"apiVersion": d.GetAPIVersion(), "kind": "MachineSet",
		"spec": map[string]any{
			"clusterName": str(d, "spec", "clusterName"), "replicas": int64(n), "template": template,
			"selector": map[string]any{"matchLabels": map[string]any{"machine-template-hash": hash, c.Group + "/deployment-name": d.GetName()}},
		}}})
	s.SetName(d.GetName() + "-" + hash)
	s.SetNamespace(d.GetNamespace())
	s.SetLabels(labels)
	s.SetAnnotations(d.GetAnnotations()) // Cluster API copies them, the autoscaler's bounds with them
	s.SetOwnerReferences([]metav1.OwnerReference{ref(d)})
	_, err := c.Resource("machinesets").Create(ctx, s, metav1.CreateOptions{})
	return err
}

func ref(o object) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes}
}

func (c *Cloud) scaleSet(ctx context.Context, s object, n int) error {
	if replicas(s) == n {
		return nil
	}
	set(s.Object, int64(n), "spec", "replicas")
	_, err := c.Resource("machinesets").Update(ctx, s, metav1.UpdateOptions{})
	return err
}

// statusReplicas writes how many machines there are.
func (c *Cloud) statusReplicas(ctx context.Context, w world, o object, resource string) error {
	n := 0
	switch resource {
	case "machinedeployments":
		for _, s := range w.setsOf(o) {
			n += len(w.machinesOf("MachineSet", s))
		}
	default:
		n = len(w.machinesOf(o.GetKind(), o))
	}
	was, has, _ := unstructured.NestedInt64(o.Object, "status", "replicas")
	if has && int(was) == n {
		return nil
	}
	set(o.Object, int64(n), "status", "replicas")
	if resource != "machinepools" {
		set(o.Object, "emulated/group="+o.GetName(), "status", "selector")
	}
	after, err := c.Resource(resource).UpdateStatus(ctx, o, metav1.UpdateOptions{})
	if err == nil {
		o.SetResourceVersion(after.GetResourceVersion())
	}
	return err
}

// crew keeps as many Machines as a MachineSet or MachinePool wants.
func (c *Cloud) crew(ctx context.Context, w world, s object, kind string) error {
	machines := w.machinesOf(kind, s)
	if s.GetDeletionTimestamp() == nil && owned(w, s, kind) {
		for _, m := range machines { // the owner was deleted: so are its machines
			if m.GetDeletionTimestamp() == nil {
				if err := c.Resource("machines").Delete(ctx, m.GetName(), metav1.DeleteOptions{}); err != nil {
					return err
				}
			}
		}
	}
	if paused(s) || s.GetDeletionTimestamp() != nil {
		return nil
	}
	if err := c.statusReplicas(ctx, w, s, map[string]string{"MachineSet": "machinesets", "MachinePool": "machinepools"}[kind]); err != nil {
		return err
	}
	if _, has, _ := unstructured.NestedInt64(s.Object, "spec", "replicas"); !has {
		return nil // the real controllers refuse such an object until it is set
	}
	for n := len(machines); n < replicas(s); n++ {
		if err := c.makeMachine(ctx, s); err != nil {
			return err
		}
	}
	surplus := len(machines) - replicas(s)
	if surplus <= 0 {
		return nil
	}
	chance := map[string]int{}
	for _, m := range machines {
		chance[m.GetName()] = c.random.Int()
	}
	slices.SortFunc(machines, func(a, b object) int {
		return cmp.Or(cmp.Compare(c.rank(b), c.rank(a)), cmp.Compare(chance[a.GetName()], chance[b.GetName()]))
	})
	for _, m := range machines[:surplus] {
		if m.GetDeletionTimestamp() == nil {
			if err := c.Resource("machines").Delete(ctx, m.GetName(), metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// owned tells a MachineSet whose MachineDeployment is no more.
func owned(w world, s object, kind string) bool {
	uid := owner(s, "MachineDeployment")
	return kind == "MachineSet" && uid != "" && !slices.ContainsFunc(w.deployments, func(d object) bool { return string(d.GetUID()) == uid })
}

// rank is Cluster API's order of deletion (machineset_deletion_order.go, v1.13).
func (c *Cloud) rank(m object) int {
	_, marked := m.GetAnnotations()[c.Group+"/delete-machine"]
	switch {
	case m.GetDeletionTimestamp() != nil:
		return 4
	case marked:
		return 3
	case str(m, "status", "nodeRef", "name") == "":
		return 2
	}
	return 1
}

func (c *Cloud) makeMachine(ctx context.Context, s object) error {
	template, _, _ := unstructured.NestedMap(s.Object, "spec", "template")
	labels, _, _ := unstructured.NestedStringMap(template, "metadata", "labels")
	labels[c.Group+"/cluster-name"] = str(s, "spec", "clusterName")
	if s.GetKind() == "MachinePool" {
		labels[c.Group+"/pool-name"] = s.GetName()
	}
	c.mu.Lock()
	c.seq++
	name := fmt.Sprintf("%s-%05d", s.GetName(), c.seq)
	c.mu.Unlock()
	m := object(&unstructured.Unstructured{Object: map[string]any{"apiVersion": s.GetAPIVersion(), "kind": "Machine", "spec": template["spec"]}})
	m.SetName(name)
	m.SetNamespace(s.GetNamespace())
	m.SetLabels(labels)
	m.SetFinalizers([]string{"machine." + Group})
	m.SetOwnerReferences([]metav1.OwnerReference{ref(s)})
	_, err := c.Resource("machines").Create(ctx, m, metav1.CreateOptions{})
	return err
}

// poolLists writes what a MachinePool tells of its instances.
func (c *Cloud) poolLists(ctx context.Context, w world, p object) error {
	var ids []any
	for _, m := range w.machinesOf("MachinePool", p) {
		if id := str(m, "spec", "providerID"); id != "" && m.GetDeletionTimestamp() == nil {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b any) int { return cmp.Compare(a.(string), b.(string)) })
	was, _, _ := unstructured.NestedSlice(p.Object, "spec", "providerIDList")
	if slices.Equal(was, ids) {
		return nil
	}
	if ids == nil {
		unstructured.RemoveNestedField(p.Object, "spec", "providerIDList")
	} else {
		set(p.Object, ids, "spec", "providerIDList")
	}
	_, err := c.Resource("machinepools").Update(ctx, p, metav1.UpdateOptions{})
	return err
}
