package store

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/volumes"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

func aClaim(name, class string, change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{Requests: list("storage", "1Gi")}}}
	if change != nil {
		change(c)
	}
	return c
}

func boundTo(volume string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName, c.Annotations = volume, map[string]string{convert.AnnotationBindCompleted: "yes"}
		c.Status.Phase = corev1.ClaimBound
	}
}

func aVolume(name string, change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: list("storage", "2Gi"), StorageClassName: "local",
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h-" + name}}},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}}
	if change != nil {
		change(v)
	}
	return v
}

func inZone(key string, zones ...string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: "In", Values: zones}}}}}}
}

func aClass(name, provisioner string, mode storagev1.VolumeBindingMode, zones ...string) *storagev1.StorageClass {
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode}
	for _, z := range zones {
		c.AllowedTopologies = append(c.AllowedTopologies, corev1.TopologySelectorTerm{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{z}}}})
	}
	return c
}

func uses(claim string) corev1.Volume {
	return corev1.Volume{Name: "v-" + claim, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
}

func podWith(volumes ...corev1.Volume) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "uid-p"}, Spec: corev1.PodSpec{Volumes: volumes}}
}

func terms(rs ...cluster.Requirement) []cluster.NodeTerm {
	out := []cluster.NodeTerm{}
	for _, r := range rs {
		out = append(out, cluster.NodeTerm{Labels: []cluster.Requirement{r}})
	}
	return out
}

const (
	immediate = storagev1.VolumeBindingImmediate
	waits     = storagev1.VolumeBindingWaitForFirstConsumer
)

func TestWhatClaimsDemand(t *testing.T) {
	ephemeral := corev1.Volume{Name: "tmp", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}
	yes := true
	owned := func(by types.UID) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "p", UID: by, Controller: &yes}}
		}
	}
	both := func(fs ...func(*corev1.PersistentVolumeClaim)) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			for _, f := range fs {
				f(c)
			}
		}
	}
	zonal := aVolume("pv", func(v *corev1.PersistentVolume) {
		v.Spec.NodeAffinity = inZone("zone", "a")
		v.Labels = map[string]string{corev1.LabelFailureDomainBetaZone: "b__a", corev1.LabelTopologyRegion: "r", corev1.LabelTopologyZone: "a____b"}
		v.Status.Phase = corev1.VolumeBound
	})
	for name, c := range map[string]struct {
		objects Objects
		volume  corev1.Volume
		want    cluster.Volume
	}{
		"no claim": {Objects{}, uses("c"), cluster.Volume{Claim: "ns/c", Refused: `persistentvolumeclaim "c" not found`}},
		"no claim yet of an ephemeral volume": {Objects{}, ephemeral,
			cluster.Volume{Claim: "ns/p-tmp", Refused: `waiting for ephemeral volume controller to create the persistentvolumeclaim "p-tmp"`}},
		"somebody else's claim": {Objects{Claims: []*corev1.PersistentVolumeClaim{aClaim("p-tmp", "", owned("another"))}}, ephemeral,
			cluster.Volume{Claim: "ns/p-tmp", Refused: "PVC ns/p-tmp was not created for pod ns/p (pod is not owner)"}},
		"lost": {Objects{Claims: []*corev1.PersistentVolumeClaim{aClaim("c", "", both(boundTo("pv"), func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }))}}, uses("c"),
			cluster.Volume{Claim: "ns/c", Refused: `persistentvolumeclaim "c" bound to non-existent persistentvolume "pv"`}},
		"being deleted": {Objects{Claims: []*corev1.PersistentVolumeClaim{aClaim("c", "", func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} })}}, uses("c"),
			cluster.Volume{Claim: "ns/c", Refused: `persistentvolumeclaim "c" is being deleted`}},
		"unbound, no class": {Objects{Claims: []*corev1.PersistentVolumeClaim{aClaim("c", "", nil)}}, uses("c"),
			cluster.Volume{Claim: "ns/c", Refused: "pod has unbound immediate PersistentVolumeClaims"}},
		"unbound, of a class that is not there": {Objects{Claims: []*corev1.PersistentVolumeClaim{aClaim("c", "x", nil)}}, uses("c"),
			cluster.Volume{Claim: "ns/c", Refused: "pod has unbound immediate PersistentVolumeClaims"}},
		"unbound, immediate": {Objects{Claims: []*corev1.PersistentVolumeClaim{aClaim("c", "x", nil)}, StorageClasses: []*storagev1.StorageClass{aClass("x", "d", immediate)}}, uses("c"),
			cluster.Volume{Claim: "ns/c", Driver: "d", Handle: "claim ns/c", Refused: "pod has unbound immediate PersistentVolumeClaims"}},
		"named and not bound": {Objects{Claims: []*corev1.PersistentVolumeClaim{aClaim("c", "x", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" })},
			StorageClasses: []*storagev1.StorageClass{aClass("x", "d", waits)}}, uses("c"),
			cluster.Volume{Claim: "ns/c", Driver: "d", Handle: "claim ns/c", Refused: "pod has unbound immediate PersistentVolumeClaims"}},
		"bound": {Objects{Claims: []*corev1.PersistentVolumeClaim{aClaim("c", "x", boundTo("pv"))}, Volumes: []*corev1.PersistentVolume{zonal}}, uses("c"),
			cluster.Volume{Claim: "ns/c", Driver: "d", Handle: "h-pv", Affinity: terms(in("zone", "a")),
				Zones: []cluster.Requirement{in(corev1.LabelFailureDomainBetaZone, "a", "b"), in(corev1.LabelTopologyRegion, "r")}}},
		"bound, ephemeral": {Objects{Claims: []*corev1.PersistentVolumeClaim{aClaim("p-tmp", "x", both(boundTo("pv"), owned("uid-p")))}, Volumes: []*corev1.PersistentVolume{zonal}}, ephemeral,
			cluster.Volume{Claim: "ns/p-tmp", Driver: "d", Handle: "h-pv", Affinity: terms(in("zone", "a"))}},
		"bound to a volume that is not there": {Objects{Claims: []*corev1.PersistentVolumeClaim{aClaim("c", "x", boundTo("pv"))}}, uses("c"),
			cluster.Volume{Claim: "ns/c", Refused: `persistentvolume "pv" not found`}},
		"bound to a volume that is not there, ephemeral": {Objects{Claims: []*corev1.PersistentVolumeClaim{aClaim("p-tmp", "x", both(boundTo("pv"), owned("uid-p")))}}, ephemeral,
			cluster.Volume{Claim: "ns/p-tmp", Refused: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"}},
		"one pod": {Objects{Claims: []*corev1.PersistentVolumeClaim{aClaim("c", "x", both(boundTo("pv"), func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
		}))}, Volumes: []*corev1.PersistentVolume{aVolume("pv", nil)}}, uses("c"),
			cluster.Volume{Claim: "ns/c", Driver: "d", Handle: "h-pv", OnePod: true}},
		"waits, anywhere": {Objects{Claims: []*corev1.PersistentVolumeClaim{aClaim("c", "x", nil)}, StorageClasses: []*storagev1.StorageClass{aClass("x", "kubernetes.io/aws-ebs", waits)}}, uses("c"),
			cluster.Volume{Claim: "ns/c", Driver: "ebs.csi.aws.com", Handle: "claim ns/c"}},
		"waits, in some zones": {Objects{Claims: []*corev1.PersistentVolumeClaim{aClaim("c", "x", nil)}, StorageClasses: []*storagev1.StorageClass{aClass("x", "d", waits, "a", "b")}}, uses("c"),
			cluster.Volume{Claim: "ns/c", Driver: "d", Handle: "claim ns/c", Topologies: terms(in("zone", "a"), in("zone", "b"))}},
		"waits, its node is chosen": {Objects{StorageClasses: []*storagev1.StorageClass{aClass("x", "d", waits, "a")},
			Claims: []*corev1.PersistentVolumeClaim{aClaim("c", "x", func(c *corev1.PersistentVolumeClaim) {
				c.Annotations = map[string]string{convert.AnnotationSelectedNode: "n"}
			})}}, uses("c"),
			cluster.Volume{Claim: "ns/c", Driver: "d", Handle: "claim ns/c", Topologies: []cluster.NodeTerm{{Labels: []cluster.Requirement{in("zone", "a")}, Fields: []cluster.Requirement{in("metadata.name", "n")}}}}},
		"waits, by the old annotation, for volumes made by hand of which there is none": {Objects{StorageClasses: []*storagev1.StorageClass{aClass("local", noProvisioner, waits)},
			Claims: []*corev1.PersistentVolumeClaim{aClaim("c", "x", func(c *corev1.PersistentVolumeClaim) {
				c.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "local"}
			})}}, uses("c"),
			cluster.Volume{Claim: "ns/c", Topologies: []cluster.NodeTerm{}}},
	} {
		c.objects.Pods = []*corev1.Pod{podWith(c.volume)}
		s := FromObjects(c.objects)
		for _, class := range s.Classes {
			if !reflect.DeepEqual(class.Volumes, []cluster.Volume{c.want}) || class.NotUnderstood != nil {
				t.Errorf("%s:\ngot  %+v %q\nwant %+v", name, class.Volumes, class.NotUnderstood, c.want)
			}
		}
		if len(s.Classes) != 1 {
			t.Errorf("%s: %d classes", name, len(s.Classes))
		}
	}
}

func TestExistingVolumesServeWaitingClaims(t *testing.T) {
	local := func(name, node string, change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
		return aVolume(name, func(v *corev1.PersistentVolume) {
			v.Spec.NodeAffinity = inZone("host", node)
			if change != nil {
				change(v)
			}
		})
	}
	reserved := func(claim, uid string) func(*corev1.PersistentVolume) {
		return func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: claim, UID: types.UID(uid)}
		}
	}
	block := corev1.PersistentVolumeBlock
	gold := "gold"
	for name, c := range map[string]struct {
		class   *storagev1.StorageClass
		claim   func(*corev1.PersistentVolumeClaim)
		volumes []*corev1.PersistentVolume
		want    []cluster.NodeTerm
	}{
		"each that is free":           {nil, nil, []*corev1.PersistentVolume{local("a", "1", nil), local("b", "2", nil)}, terms(in("host", "1"), in("host", "2"))},
		"or where one is provisioned": {aClass("local", "d", waits, "z"), nil, []*corev1.PersistentVolume{local("a", "1", nil)}, terms(in("host", "1"), in("zone", "z"))},
		"anywhere":                    {nil, nil, []*corev1.PersistentVolume{local("a", "1", nil), aVolume("b", nil)}, nil},
		"anywhere, where a volume asks for fields only": {nil, nil, []*corev1.PersistentVolume{local("a", "1", nil), aVolume("b", func(v *corev1.PersistentVolume) {
			v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{"n"}}}}}}}
		})}, nil},
		"not one that is too small, of another mode, class or kind, bound, going, or somebody else's": {nil, nil, []*corev1.PersistentVolume{
			local("a", "1", func(v *corev1.PersistentVolume) { v.Spec.Capacity = list("storage", "1Mi") }),
			local("b", "2", func(v *corev1.PersistentVolume) {
				v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
			}),
			local("c", "3", func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "another" }),
			local("d", "4", func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = &block }),
			local("e", "5", func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound }),
			local("f", "6", func(v *corev1.PersistentVolume) { v.DeletionTimestamp = &metav1.Time{} }),
			local("g", "7", func(v *corev1.PersistentVolume) { v.Spec.VolumeAttributesClassName = &gold }),
			local("h", "8", reserved("another", "")), local("i", "9", reserved("c", "of another")),
			local("j", "10", func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased })}, []cluster.NodeTerm{}},
		"only the one that is reserved": {nil, nil, []*corev1.PersistentVolume{local("a", "1", nil), local("b", "2", reserved("c", "uid-c"))}, terms(in("host", "2"))},
		"only those that it selects": {nil, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "fast"}}
		}, []*corev1.PersistentVolume{local("a", "1", nil), local("b", "2", func(v *corev1.PersistentVolume) { v.Labels = map[string]string{"disk": "fast"} })}, terms(in("host", "2"))},
	} {
		if c.class == nil {
			c.class = aClass("local", noProvisioner, waits)
		}
		s := FromObjects(Objects{Pods: []*corev1.Pod{podWith(uses("c"))}, Claims: []*corev1.PersistentVolumeClaim{aClaim("c", "local", c.claim)},
			Volumes: c.volumes, StorageClasses: []*storagev1.StorageClass{c.class}})
		if got := s.Classes[0].Volumes[0]; !reflect.DeepEqual(got.Topologies, c.want) || got.Refused != "" {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, c.want)
		}
	}
	two := Objects{Pods: []*corev1.Pod{podWith(uses("c"), uses("d"))}, Volumes: []*corev1.PersistentVolume{local("a", "1", nil)},
		Claims: []*corev1.PersistentVolumeClaim{aClaim("c", "local", nil), aClaim("d", "local", nil)}, StorageClasses: []*storagev1.StorageClass{aClass("local", noProvisioner, waits)}}
	if got := FromObjects(two).Classes[0].NotUnderstood; len(got) != 1 {
		t.Errorf("two claims and one volume: held for %q", got)
	}
}

// TestClassesFollowStorage: whatever order the watches tell a pod and its storage in,
// and whatever changes later, the pod has the class of the moment.
func TestClassesFollowStorage(t *testing.T) {
	w := New([]string{"default-scheduler"})
	class := func() cluster.Volume {
		p, ok := w.pods.get("ns/p")
		if !ok {
			p = *w.nodes.pod("ns/p", "n")
		}
		return w.classes.rows[p.Class].Volumes[0]
	}
	pending := podWith(uses("c"))
	for _, step := range []struct {
		name string
		do   func() Urgency
		want Urgency
		is   func(cluster.Volume) bool
	}{
		{"a pod before its claim", func() Urgency { return w.PutPod(pending) }, Later, func(v cluster.Volume) bool { return v.Refused != "" }},
		{"an unbound claim", func() Urgency { return w.PutClaim(aClaim("c", "x", nil)) }, Soon, func(v cluster.Volume) bool { return v.Refused != "" }},
		{"the same again", func() Urgency { return w.PutClaim(aClaim("c", "x", nil)) }, Never, nil},
		{"its class", func() Urgency { return w.PutStorageClass(aClass("x", "d", waits, "a")) }, Soon, func(v cluster.Volume) bool { return v.Refused == "" && len(v.Topologies) == 1 }},
		{"the class in another zone", func() Urgency { return w.PutStorageClass(aClass("x", "d", waits, "a", "b")) }, Soon, func(v cluster.Volume) bool { return len(v.Topologies) == 2 }},
		{"a volume that might serve", func() Urgency {
			return w.PutVolume(aVolume("pv", func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "x" }))
		}, Soon, func(v cluster.Volume) bool { return v.Topologies == nil }},
		{"bound", func() Urgency { return w.PutClaim(aClaim("c", "x", boundTo("pv"))) }, Soon, func(v cluster.Volume) bool { return v.Handle == "h-pv" }},
		{"another claim", func() Urgency { return w.PutClaim(aClaim("other", "x", nil)) }, Never, nil},
		{"a node affinity of the volume", func() Urgency {
			return w.PutVolume(aVolume("pv", func(v *corev1.PersistentVolume) { v.Spec.NodeAffinity = inZone("zone", "a") }))
		}, Soon, func(v cluster.Volume) bool { return len(v.Affinity) == 1 }},
		{"the pod is bound", func() Urgency {
			p := pending.DeepCopy()
			p.Spec.NodeName = "n"
			return w.PutPod(p)
		}, Later, func(v cluster.Volume) bool { return len(v.Affinity) == 1 }},
		{"the volume goes under a pod that runs", func() Urgency { return w.DeleteVolume("pv") }, Never, func(v cluster.Volume) bool { return v.Refused != "" }},
		{"the claim goes", func() Urgency { return w.DeleteClaim("ns/c") }, Never, func(v cluster.Volume) bool { return v.Handle == "" }},
		{"the class goes", func() Urgency { return w.DeleteStorageClass("x") }, Never, nil},
		{"the other claim goes", func() Urgency { return w.DeleteClaim("ns/other") }, Never, nil},
	} {
		if got := step.do(); got != step.want {
			t.Errorf("%s: urgency %d, want %d", step.name, got, step.want)
		}
		if step.is != nil && !step.is(class()) {
			t.Errorf("%s: %+v", step.name, class())
		}
	}
	w.DeletePod("ns/p", "n")
	if !reflect.DeepEqual(w.volumes, volumes.NewIndex()) || len(w.classes.index) != 0 {
		t.Errorf("left over: %+v, classes %v", w.volumes, w.classes.index)
	}
}

// TestTheOrderOfWatchesMeansNothing: five watches tell their objects in any order, with
// older versions of some before; the classes are those of the last versions.
func TestTheOrderOfWatchesMeansNothing(t *testing.T) {
	seed := drawn.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	objects := Objects{StorageClasses: []*storagev1.StorageClass{aClass("x", "d", waits, "a"), aClass("local", noProvisioner, waits), aClass("now", "d", immediate)}}
	for i := range 12 {
		name := fmt.Sprint(i)
		class := []string{"x", "local", "now"}[i%3]
		var change func(*corev1.PersistentVolumeClaim)
		if i%2 == 0 {
			change = boundTo("pv" + name)
		}
		if i%4 != 3 {
			objects.Claims = append(objects.Claims, aClaim(name, class, change))
		}
		objects.Volumes = append(objects.Volumes, aVolume("pv"+name, func(v *corev1.PersistentVolume) {
			v.Spec.StorageClassName, v.Spec.NodeAffinity = class, inZone("host", name)
			if i%2 == 0 {
				v.Status.Phase = corev1.VolumeBound
			}
		}))
		objects.Pods = append(objects.Pods, pod("p"+name, func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{uses(name), uses(fmt.Sprint(i / 2))}
			p.Spec.NodeName = []string{"", "n"}[i%2]
		}))
	}
	demands := func(w *Store) map[cluster.PodKey]cluster.PodClass {
		s := w.contents()
		out := map[cluster.PodKey]cluster.PodClass{}
		for p := range s.AllPods() {
			out[p.Key] = s.Classes[p.Class]
		}
		return out
	}
	var want map[cluster.PodKey]cluster.PodClass
	for round := range 200 {
		w := New(nil)
		var tell []func()
		for _, o := range objects.StorageClasses {
			tell = append(tell, func() { w.PutStorageClass(o) })
		}
		for _, o := range objects.Claims {
			older := o.DeepCopy()
			older.Spec.VolumeName, older.Annotations = "", nil
			tell = append(tell, func() { w.PutClaim(older); w.PutClaim(o) })
		}
		for _, o := range objects.Volumes {
			older := o.DeepCopy()
			older.Status.Phase, older.Spec.NodeAffinity = corev1.VolumeAvailable, nil
			tell = append(tell, func() { w.PutVolume(older); w.PutVolume(o) })
		}
		for _, o := range objects.Pods {
			older := o.DeepCopy()
			older.Spec.NodeName = ""
			tell = append(tell, func() { w.PutPod(older); w.PutPod(o) })
		}
		if round > 0 {
			r.Shuffle(len(tell), func(i, j int) { tell[i], tell[j] = tell[j], tell[i] })
		}
		for _, f := range tell {
			f()
		}
		got := demands(w)
		if round == 0 {
			want = got
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d:\ngot  %+v\nwant %+v", round, got, want)
		}
		for _, p := range objects.Pods {
			w.DeletePod(cluster.PodKey(p.Namespace+"/"+p.Name), cluster.NodeName(p.Spec.NodeName))
		}
		for _, o := range objects.Claims {
			w.DeleteClaim(o.Namespace + "/" + o.Name)
		}
		for _, o := range objects.Volumes {
			w.DeleteVolume(o.Name)
		}
		for _, o := range objects.StorageClasses {
			w.DeleteStorageClass(o.Name)
		}
		if !reflect.DeepEqual(w.volumes, volumes.NewIndex()) || len(w.classes.index) != 0 {
			t.Fatalf("round %d: left over %+v %v", round, w.volumes, w.classes.index)
		}
	}
}

func TestVolumeInThePodItself(t *testing.T) {
	p := podWith(corev1.Volume{VolumeSource: corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{VolumeID: "c"}}})
	if got := FromObjects(Objects{Pods: []*corev1.Pod{p}}).Classes[0].Volumes; !reflect.DeepEqual(got, []cluster.Volume{{Driver: "cinder.csi.openstack.org", Handle: "c"}}) {
		t.Errorf("a volume in the pod itself: %+v", got)
	}
}
