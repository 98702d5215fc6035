package capi

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// With Options.RealCore the controllers of Cluster API are its own, and only an
// infrastructure provider is played here, by its contract: EmulatedMachines get an
// instance and say so, and are let go when the instance has ended.

// infraFinalizer keeps an EmulatedMachine until its instance has ended.
const infraFinalizer = "emulatedmachine." + InfraGroup

func (c *Cloud) infra(resource string) dynamic.ResourceInterface {
	return c.client.Resource(schema.GroupVersionResource{Group: InfraGroup, Version: "v1beta2", Resource: resource}).Namespace(c.Namespace)
}

// provide lets the infrastructure provider do one step for everything.
func (c *Cloud) provide(ctx context.Context) error {
	var errs []error
	note := c.noting(&errs)
	clusters, err := c.infra("emulatedclusters").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range clusters.Items {
		note(c.provideCluster(ctx, clusters.Items[i].GetName()))
	}
	list, err := c.infra("emulatedmachines").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	machines, err := c.Resource("machines").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		im := &list.Items[i]
		at := slices.IndexFunc(machines.Items, func(m unstructured.Unstructured) bool { return string(m.GetUID()) == owner(im, "Machine") })
		switch {
		case im.GetDeletionTimestamp() != nil:
			note(c.withdraw(ctx, im))
		case at >= 0:
			note(c.provideMachine(ctx, im, &machines.Items[at]))
		}
	}
	return errors.Join(errs...)
}

// provideCluster calls the infrastructure of a cluster provisioned, and its control
// plane initialized and managed elsewhere.
func (c *Cloud) provideCluster(ctx context.Context, name string) error {
	status := map[string]any{
		"initialization":              map[string]any{"provisioned": true, "controlPlaneInitialized": true},
		"externalManagedControlPlane": true, "version": version,
		"conditions": []any{ready("True", "Ready", "")},
	}
	for _, resource := range []string{"emulatedclusters", "emulatedcontrolplanes"} {
		o, err := c.infra(resource).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if _, done := o.Object["status"]; done {
			continue
		}
		set(o.Object, status, "status")
		if _, err := c.infra(resource).UpdateStatus(ctx, o, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func ready(status, reason, message string) map[string]any {
	return map[string]any{"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}
}

// provideMachine takes one EmulatedMachine a step further.
func (c *Cloud) provideMachine(ctx context.Context, im, m object) error {
	if !slices.Contains(im.GetFinalizers(), infraFinalizer) {
		im.SetFinalizers(append(im.GetFinalizers(), infraFinalizer))
		_, err := c.infra("emulatedmachines").Update(ctx, im, metav1.UpdateOptions{})
		c.due(0)
		return err
	}
	c.mu.Lock()
	in := c.instances[m.GetName()]
	c.mu.Unlock()
	if done, _, _ := unstructured.NestedBool(im.Object, "status", "initialization", "provisioned"); done {
		return c.join(ctx, in)
	}
	switch {
	case str(im, "status", "failureReason") != "", str(m, "spec", "bootstrap", "dataSecretName") == "":
		return nil
	case in == nil:
		refusal, refused := c.launch(m)
		if !refused {
			c.due(c.Provision)
			return nil
		}
		c.due(c.Retry)
		if told, _, _ := unstructured.NestedSlice(im.Object, "status", "conditions"); len(told) == 1 && told[0].(map[string]any)["message"] == refusal.Text {
			return nil
		}
		return c.infraStatus(ctx, im, func(status map[string]any) {
			status["conditions"] = []any{ready("False", refusal.Reason, refusal.Text)}
			if refusal.Terminal {
				status["failureReason"], status["failureMessage"] = refusal.Reason, refusal.Text
			}
		})
	case time.Since(in.started) < c.Provision:
		c.due(c.Provision - time.Since(in.started))
		return nil
	case str(im, "spec", "providerID") == "":
		set(im.Object, in.ProviderID, "spec", "providerID")
		_, err := c.infra("emulatedmachines").Update(ctx, im, metav1.UpdateOptions{})
		c.due(0)
		return err
	}
	return c.infraStatus(ctx, im, func(status map[string]any) {
		status["initialization"] = map[string]any{"provisioned": true}
		status["conditions"] = []any{ready("True", "Ready", "the instance runs")}
		status["addresses"] = []any{
			map[string]any{"type": "Hostname", "address": in.Machine},
			map[string]any{"type": "InternalDNS", "address": in.Machine},
			map[string]any{"type": "InternalIP", "address": in.Address},
		}
	})
}

func (c *Cloud) infraStatus(ctx context.Context, im object, change func(status map[string]any)) error {
	status, _, _ := unstructured.NestedMap(im.Object, "status")
	if status == nil {
		status = map[string]any{}
	}
	change(status)
	im.Object["status"] = status
	_, err := c.infra("emulatedmachines").UpdateStatus(ctx, im, metav1.UpdateOptions{})
	return err
}

// join lets the instance become a Node: by what Started boots, or as a Node object
// that nobody's kubelet keeps.
func (c *Cloud) join(ctx context.Context, in *Instance) error {
	if in == nil || !in.Alive || in.booted {
		return nil
	}
	if c.Started != nil {
		in.booted = true
		c.Started(*in)
		return nil
	}
	if rest := c.Provision + c.Boot - time.Since(in.started); rest > 0 {
		c.due(rest)
		return nil
	}
	node := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": in.Machine}, "spec": map[string]any{"providerID": in.ProviderID}}}
	nodes := c.client.Resource(nodeResource)
	if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	// A rollout goes on when the new machine's Node is Ready, and under no pressure that
	// is not known.
	now := time.Now().UTC().Format(time.RFC3339)
	var conditions []any
	for kind, value := range map[string]string{"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"} {
		conditions = append(conditions, map[string]any{"type": kind, "status": value, "reason": "Emulated", "message": "",
			"lastHeartbeatTime": now, "lastTransitionTime": now})
	}
	status := map[string]any{"status": map[string]any{"conditions": conditions}}
	raw, err := json.Marshal(status)
	if err != nil {
		return err
	}
	if _, err = nodes.Patch(ctx, in.Machine, types.MergePatchType, raw, metav1.PatchOptions{}, "status"); err != nil {
		return err
	}
	in.booted = true
	return nil
}

var nodeResource = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

// withdraw ends the instance of an EmulatedMachine that is being deleted.
func (c *Cloud) withdraw(ctx context.Context, im object) error {
	in, rest := c.ending(im.GetName())
	if rest > 0 {
		c.due(rest)
		return nil
	}
	if in != nil {
		c.end(in)
	}
	im.SetFinalizers(slices.DeleteFunc(im.GetFinalizers(), func(f string) bool { return f == infraFinalizer }))
	_, err := c.infra("emulatedmachines").Update(ctx, im, metav1.UpdateOptions{})
	return err
}
