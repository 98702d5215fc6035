package capi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// QuotaText is what the emulated infrastructure says when no instance may be started.
const QuotaText = "could not create instance: Quota exceeded for instances"

// machine takes one Machine a step further.
func (c *Cloud) machine(ctx context.Context, w world, m object) error {
	if m.GetDeletionTimestamp() != nil {
		return c.endMachine(ctx, m)
	}
	if paused(m) {
		return nil
	}
	c.mu.Lock()
	in := c.instances[m.GetName()]
	c.mu.Unlock()
	phase := str(m, "status", "phase")
	switch {
	case givenUp(m):
		return nil
	case in == nil:
		return c.start(ctx, m)
	case !in.Alive && str(m, "spec", "providerID") != "":
		return nil // its instance was ended behind Cluster API's back; a health check's affair
	case time.Since(in.started) < c.Provision:
		c.due(c.Provision - time.Since(in.started))
		return nil
	case str(m, "spec", "providerID") == "":
		set(m.Object, in.ProviderID, "spec", "providerID")
		_, err := c.Resource("machines").Update(ctx, m, metav1.UpdateOptions{})
		c.due(0)
		return err
	case phase == "Provisioning":
		if c.Started != nil && !in.booted {
			in.booted = true // the controllers' own goroutine alone looks at it
			c.Started(*in)
		}
		return c.status(ctx, m, func() {
			set(m.Object, "Provisioned", "status", "phase")
			set(m.Object, []any{
				map[string]any{"type": "Hostname", "address": in.Machine},
				map[string]any{"type": "InternalDNS", "address": in.Machine},
				map[string]any{"type": "InternalIP", "address": in.Address},
			}, "status", "addresses")
			c.condition(m, "InfrastructureReady", "True", "Ready", "the instance runs")
		})
	case phase == "Provisioned":
		return c.bindNode(ctx, m, in)
	}
	return nil
}

// launch asks the emulated cloud for an instance for a Machine.
func (c *Cloud) launch(m object) (refusal Refusal, refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	alive := 0
	for _, i := range c.instances {
		if i.Alive {
			alive++
		}
	}
	refusal = c.refusal
	if c.quota > 0 && alive >= c.quota {
		refusal = Refusal{Reason: "InstanceProvisionFailed", Text: QuotaText}
	}
	if refusal.Text != "" {
		return refusal, true
	}
	n, id := len(c.instances), "emulated:///"+c.Namespace+"/"+m.GetName()
	if c.ProviderID != nil {
		id = c.ProviderID(m.GetName())
	}
	c.instances[m.GetName()] = &Instance{
		Machine: m.GetName(), ProviderID: id, Group: m.GetLabels()["emulated/group"],
		Address: fmt.Sprintf("10.%d.%d.%d", 64+n>>16&63, n>>8&255, n&255), Alive: true, started: time.Now(),
		Secret: str(m, "spec", "bootstrap", "dataSecretName"), Template: str(m, "spec", "infrastructureRef", "name"),
	}
	return Refusal{}, false
}

// start lets a Machine have its instance.
func (c *Cloud) start(ctx context.Context, m object) error {
	refusal, refused := c.launch(m)
	c.due(c.Provision)
	if refused {
		c.due(c.Retry)
	}
	if refused && blocked(m) || !refused && str(m, "status", "phase") == "Provisioning" && !blocked(m) {
		return nil
	}
	return c.status(ctx, m, func() {
		set(m.Object, "Provisioning", "status", "phase")
		if refused && refusal.Terminal {
			c.giveUp(m, refusal)
		}
		if refused {
			c.condition(m, "InfrastructureReady", "False", refusal.Reason, refusal.Text)
		} else {
			c.condition(m, "InfrastructureReady", "False", "Creating", "the instance starts")
		}
	})
}

// giveUp says that the Machine failed where the contract has it: v1beta1 has a phase for
// it, the controllers of v1beta2 leave the phase as it is (seen of v1.13).
func (c *Cloud) giveUp(m object, r Refusal) {
	where := []string{"status", "deprecated", "v1beta1"}
	if c.Version == "v1beta1" {
		set(m.Object, "Failed", "status", "phase")
		where = []string{"status"}
	}
	set(m.Object, r.Reason, append(slices.Clone(where), "failureReason")...)
	set(m.Object, r.Text, append(slices.Clone(where), "failureMessage")...)
}

// bindNode writes nodeRef and calls the Machine Running.
func (c *Cloud) bindNode(ctx context.Context, m object, in *Instance) error {
	node := in.Machine
	if c.Started != nil {
		node = ""
		if c.NodeOf != nil {
			node = c.NodeOf(ctx, in.ProviderID)
		}
		if node == "" {
			c.due(200 * time.Millisecond)
			return nil
		}
	} else if rest := c.Provision + c.Boot - time.Since(in.started); rest > 0 {
		c.due(rest)
		return nil
	}
	return c.status(ctx, m, func() {
		nodeRef := map[string]any{"name": node}
		if c.Version == "v1beta1" {
			nodeRef["kind"], nodeRef["apiVersion"] = "Node", "v1"
		}
		set(m.Object, nodeRef, "status", "nodeRef")
		set(m.Object, "Running", "status", "phase")
	})
}

// endMachine ends the instance of a Machine that is being deleted, and lets it go.
func (c *Cloud) endMachine(ctx context.Context, m object) error {
	in, rest := c.ending(m.GetName())
	if str(m, "status", "phase") != "Deleting" {
		if err := c.status(ctx, m, func() { set(m.Object, "Deleting", "status", "phase") }); err != nil {
			return err
		}
	}
	if rest > 0 {
		c.due(rest)
		return nil
	}
	if in != nil {
		c.end(in)
	}
	if node := str(m, "status", "nodeRef", "name"); node != "" && c.DeleteNode != nil {
		if err := c.DeleteNode(ctx, node); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	m.SetFinalizers(nil)
	_, err := c.Resource("machines").Update(ctx, m, metav1.UpdateOptions{})
	return err
}

// ending notes that the instance of a Machine was told to end; rest is how long it
// takes from now.
func (c *Cloud) ending(machine string) (in *Instance, rest time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if in = c.instances[machine]; in == nil {
		return nil, 0
	}
	if in.ended.IsZero() {
		in.ended = time.Now()
	}
	return in, c.Terminate - time.Since(in.ended)
}

func (c *Cloud) end(in *Instance) {
	c.mu.Lock()
	was := in.Alive
	in.Alive = false
	c.mu.Unlock()
	if was && c.Ended != nil {
		c.Ended(in.ProviderID)
	}
}

// orphans ends instances whose Machine object was taken away without a trace.
func (c *Cloud) orphans(w world) {
	for _, in := range c.Instances() {
		if in.Alive && !slices.ContainsFunc(w.machines, func(m object) bool { return m.GetName() == in.Machine }) {
			c.mu.Lock()
			own := c.instances[in.Machine]
			c.mu.Unlock()
			c.end(own)
		}
	}
}

func (c *Cloud) status(ctx context.Context, m object, change func()) error {
	change()
	after, err := c.Resource("machines").UpdateStatus(ctx, m, metav1.UpdateOptions{})
	if err == nil {
		m.SetResourceVersion(after.GetResourceVersion())
	}
	return err
}

// condition sets one in the form of the contract that is spoken.
func (c *Cloud) condition(m object, kind, status, reason, message string) {
	list, _, _ := unstructured.NestedSlice(m.Object, "status", "conditions")
	list = slices.DeleteFunc(list, func(v any) bool { return v.(map[string]any)["type"] == kind })
	v := map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}
	if c.Version == "v1beta1" && status == "False" {
		v["severity"] = "Info"
		if strings.HasSuffix(reason, "Failed") {
			v["severity"] = "Error"
		}
	}
	set(m.Object, append(list, v), "status", "conditions")
}

// givenUp tells a Machine that failed for good.
func givenUp(m object) bool {
	return str(m, "status", "failureReason") != "" || str(m, "status", "deprecated", "v1beta1", "failureReason") != ""
}

// blocked tells a Machine whose instance was refused.
func blocked(m object) bool {
	list, _, _ := unstructured.NestedSlice(m.Object, "status", "conditions")
	return slices.ContainsFunc(list, func(v any) bool {
		c := v.(map[string]any)
		return c["type"] == "InfrastructureReady" && c["status"] == "False" && !slices.Contains([]any{"Creating", "NotReady", "ObjectDoesNotExist"}, c["reason"])
	})
}
