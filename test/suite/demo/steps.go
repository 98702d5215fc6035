package demo

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

func (d *demo) createDeployment(ctx context.Context) error {
	labels := map[string]string{"app": deployment}
	zero := int32(0)
	grace := int64(2)
	_, err := d.client.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: deployment, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &zero,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: &grace,
					Containers: []corev1.Container{{Name: "nginx", Image: "nginx", Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{
							corev1.ResourceCPU:    resource.MustParse(d.CPU),
							corev1.ResourceMemory: resource.MustParse(d.Memory),
						}}}},
				},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create deployment %s: %w", deployment, err)
	}
	return nil
}

func (d *demo) scale(ctx context.Context, n int) error {
	_, err := d.client.AppsV1().Deployments(namespace).UpdateScale(ctx, deployment, &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: deployment, Namespace: namespace},
		Spec:       autoscalingv1.ScaleSpec{Replicas: int32(n)},
	}, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("scale deployment %s to %d: %w", deployment, n, err)
	}
	return nil
}

func (d *demo) deleteDeployment(ctx context.Context) error {
	p := metav1.DeletePropagationBackground
	err := d.client.AppsV1().Deployments(namespace).Delete(ctx, deployment, metav1.DeleteOptions{PropagationPolicy: &p})
	if err != nil {
		return fmt.Errorf("delete deployment %s: %w", deployment, err)
	}
	return nil
}

// podsThatFit is the exact number of the demo's pods that a Node holds, from its
// own allocatable: the yardstick for the number of machines.
func (d *demo) podsThatFit(n *corev1.Node) int64 {
	cpu, mem := resource.MustParse(d.CPU), resource.MustParse(d.Memory)
	a := n.Status.Allocatable
	return min(a.Cpu().MilliValue()/cpu.MilliValue(), a.Memory().Value()/mem.Value(), a.Pods().Value())
}

func (d *demo) roots() (*x509.CertPool, error) {
	pem, err := os.ReadFile(d.w.ControlPlane.CAFile())
	if err != nil {
		return nil, fmt.Errorf("read the cluster CA: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read the cluster CA: no certificate in %s", d.w.ControlPlane.CAFile())
	}
	return roots, nil
}

// living counts instances that are not gone.
func (d *demo) living() int {
	n := 0
	for _, i := range d.cloud.Instances("") {
		if i.Alive {
			n++
		}
	}
	return n
}

// verifyNothingLeft looks for what a finished story must not leave behind in the
// cluster and in the cloud.
func (d *demo) verifyNothingLeft(ctx context.Context) error {
	if c := d.seen.count(); c.csrsPending > 0 {
		d.finding("%d certificate requests are still pending", c.csrsPending)
	}
	secrets, err := d.client.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{FieldSelector: "type=" + string(corev1.SecretTypeBootstrapToken)})
	if err != nil {
		return fmt.Errorf("list bootstrap tokens: %w", err)
	}
	for _, s := range secrets.Items {
		if len(s.Data["expiration"]) == 0 {
			d.finding("bootstrap token %s never expires", s.Data["token-id"])
		}
	}
	if n := d.living(); n > 0 {
		d.finding("%d instances are still there", n)
	}
	if left := d.cloud.Leftovers(); len(left) > 0 {
		d.finding("left over in the cloud: %s", strings.Join(left, ", "))
	}
	return nil
}

// summary prints the table and fails the demo when anything was not as promised.
func (d *demo) summary(context.Context) error {
	table(d.Out, "What happened", d.rows())
	if len(d.findings) > 0 {
		return fmt.Errorf("the demo ended with %d findings: %s", len(d.findings), strings.Join(d.findings, "; "))
	}
	return nil
}

func (d *demo) rows() [][2]string {
	var rows [][2]string
	add := func(k, format string, args ...any) { rows = append(rows, [2]string{k, fmt.Sprintf(format, args...)}) }
	first, _ := span(d.seen.times("unschedulable"))
	var decided time.Time
	raises := d.cloud.Raises()
	if len(raises) > 0 {
		decided = raises[0].At
	}
	_, node := span(d.seen.times("node"))
	_, ready := span(d.seen.times("ready"))
	d.mu.Lock()
	_, launched := span(d.launched)
	d.mu.Unlock()
	add("pods", "%d/%d Running", d.ran, d.Replicas)
	add("machines", "%d started (the fewest that hold the pods: %d)", len(d.seen.times("node")), d.optimum)
	add("first pod pending -> decision", "%s", since(first, decided))
	add("first pod pending -> last instance running", "%s", since(first, launched))
	add("first pod pending -> last Node registered", "%s", since(first, node))
	add("first pod pending -> last Node Ready", "%s", since(first, ready))
	add("first pod pending -> last pod Running", "%s", since(first, d.allRan))
	add("serving certificates", "%s from request to certificate (median), %d verified by a TLS dial", d.medianIssue(), d.dialled)
	add("after the load went", "%d Node for %d pods, then %d Nodes at min 0", d.atSmall, d.Small, d.seen.count().nodes)
	add("scale-ups", "%d%s", len(raises), names(raises))
	add("cloud calls by the agent", "%s", counts(d.cloud.Counts()))
	add("left over", "%d Nodes, %d certificate requests pending, %d instances, %d other things in the cloud",
		d.seen.count().nodes, d.seen.count().csrsPending, d.living(), len(d.cloud.Leftovers()))
	if m := d.agent.Usage(); m != "" {
		add("the agent itself", "%s", m)
	}
	add("whole demo", "%s", time.Since(d.screen.start).Round(100*time.Millisecond))
	return rows
}

// medianIssue is the median time from a serving CSR's appearance to its certificate.
func (d *demo) medianIssue() time.Duration {
	asked := d.seen.times("csr")
	var all []time.Duration
	for name, t := range d.seen.times("issued") {
		all = append(all, t.Sub(asked[name]))
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2].Round(time.Millisecond)
}

// names are the calls that the raises were, each once.
func names(raises []world.Raise) string {
	var all []string
	for _, r := range raises {
		all = append(all, r.What)
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(all, ", ") + ")"
}

func counts(m map[string]int) string {
	var names []string
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	var parts []string
	for _, n := range names {
		parts = append(parts, fmt.Sprintf("%s %d", n, m[n]))
	}
	return strings.Join(parts, ", ")
}

func span(at map[string]time.Time) (first, last time.Time) {
	for _, t := range at {
		if first.IsZero() || t.Before(first) {
			first = t
		}
		if t.After(last) {
			last = t
		}
	}
	return first, last
}

func since(a, b time.Time) string {
	if a.IsZero() || b.IsZero() {
		return "not seen"
	}
	return b.Sub(a).Round(10 * time.Millisecond).String()
}

// showWhy prints the agent's last lines, where the reason of a failure usually is.
func (d *demo) showWhy() {
	if d.agent == nil {
		return
	}
	fmt.Fprintf(d.Out, "\nthe agent's last lines (%s):\n%s\n", d.agent.Log, d.agent.Tail(40))
	if d.cloud != nil {
		fmt.Fprintf(d.Out, "the cloud:\n%s\n", d.cloud)
	}
}

// cleanUp ends everything that was started and looks that it ended.
func (d *demo) cleanUp(cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	var errs []error
	if d.w != nil {
		errs = append(errs, d.w.Stop(ctx))
	}
	if left := childProcesses(); len(left) > 0 {
		errs = append(errs, fmt.Errorf("left over processes: %s", strings.Join(left, ", ")))
	}
	if d.ownDir && cause == nil {
		errs = append(errs, os.RemoveAll(d.dir))
	} else if cause != nil {
		fmt.Fprintf(d.Out, "\nlogs are kept in %s\n", d.dir)
	}
	return errors.Join(errs...)
}

// childProcesses lists living children of this process, from /proc; nil where
// there is no /proc.
func childProcesses() []string {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var out []string
	for _, f := range stats {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		open, end := strings.IndexByte(string(b), '('), strings.LastIndexByte(string(b), ')')
		if open < 0 || end < 0 {
			continue
		}
		fields := strings.Fields(string(b[end+1:]))
		if len(fields) > 1 && fields[1] == fmt.Sprint(os.Getpid()) && fields[0] != "Z" {
			out = append(out, string(b[open+1:end]))
		}
	}
	return out
}
