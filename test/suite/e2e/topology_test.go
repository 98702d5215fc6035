package e2e

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const zoneLabel = corev1.LabelTopologyZone

func labelled(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

// keepAway: small pods that keep away from each other by host bring one machine each, in
// one call; those of another deployment that keep away from them share none of theirs.
func keepAway(s *scene) {
	s.pool(pool{name: "away", max: 20})
	awayFrom := func(app string) func(*corev1.PodSpec) {
		return func(p *corev1.PodSpec) {
			p.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{LabelSelector: labelled(app), TopologyKey: corev1.LabelHostname}}}}
		}
	}
	s.putOn("away", "away", 3, "100m", "16Mi", awayFrom("away"))
	s.runs("away", 3)
	if n := len(s.spots("away", corev1.LabelHostname)); n != 3 {
		s.t.Errorf("3 pods run on %d machines", n)
	}
	s.putOn("away-lone", "away", 1, "100m", "16Mi", awayFrom("away"))
	s.runs("away-lone", 1)
	s.wants("away", "3", "4")
}

// spreadOverZones: replicas with a hard spread bring machines in each of three zones,
// though every group alone would hold them all.
func spreadOverZones(s *scene) {
	for _, zone := range []string{"a", "b", "c"} {
		s.pool(pool{name: "spread-" + zone, max: 5, zones: []string{zone}, labels: map[string]string{"pair": "spread"}})
	}
	s.putOn("spread", "", 6, "100m", "16Mi", func(p *corev1.PodSpec) {
		p.NodeSelector = map[string]string{"pair": "spread"}
		p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: zoneLabel, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: labelled("spread"),
			MinDomains: new32(3)}}
	})
	s.runs("spread", 6)
	want := map[string]int{"eu-west-1a": 2, "eu-west-1b": 2, "eu-west-1c": 2}
	if got := s.spots("spread", zoneLabel); !maps.Equal(got, want) {
		s.t.Errorf("the pods run in %v, want %v", got, want)
	}
	for _, zone := range []string{"a", "b", "c"} {
		s.wants("spread-"+zone, "1")
	}
}

// claimWaits: a claim that waits for its first consumer, of a class that provisions in
// one zone only, brings a machine of that zone; and once its volume is there, so does a
// pod that comes later and uses it.
func claimWaits(s *scene) {
	for _, zone := range []string{"a", "b"} {
		s.pool(pool{name: "disk-" + zone, max: 5, zones: []string{zone}, labels: map[string]string{"pair": "disk"}})
	}
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	_, err := s.client.StorageV1().StorageClasses().Create(s.t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "zonal"}, Provisioner: "disk.example.net", VolumeBindingMode: &mode,
		AllowedTopologies: []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: zoneLabel, Values: []string{"eu-west-1b"}}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	class := "zonal"
	_, err = s.client.CoreV1().PersistentVolumeClaims("default").Create(s.t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	withData := func(p *corev1.PodSpec) {
		p.NodeSelector = map[string]string{"pair": "disk"}
		p.Volumes = []corev1.Volume{claimed("data")}
	}
	s.putOn("disk-first", "", 1, "3", "16Mi", withData)
	s.provision("data")
	s.runs("disk-first", 1)
	s.putOn("disk-second", "", 1, "3", "16Mi", withData)
	s.runs("disk-second", 1)
	s.wants("disk-a")
	s.wants("disk-b", "1", "2")
}

func claimed(name string) corev1.Volume {
	return corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}
}

func new32(n int32) *int32 { return &n }

// provision does what a storage driver does: once the scheduler has chosen a node for
// the claim it makes a volume in that node's zone.
func (s *scene) provision(name string) {
	s.t.Helper()
	ctx := s.t.Context()
	var claim *corev1.PersistentVolumeClaim
	var node string
	s.until("a node for claim "+name, func() bool {
		var err error
		claim, err = s.client.CoreV1().PersistentVolumeClaims("default").Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			node = claim.Annotations["volume.kubernetes.io/selected-node"]
		}
		return node != ""
	})
	n, err := s.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = s.client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name, Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "disk.example.net"}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: *claim.Spec.StorageClassName, AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "default", Name: name, UID: claim.UID},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.net", VolumeHandle: name}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zoneLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{n.Labels[zoneLabel]}}}}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = s.client.CoreV1().PersistentVolumes().Delete(context.Background(), "pv-"+name, metav1.DeleteOptions{})
	})
}

// spots counts an app's running pods by a label of their nodes.
func (s *scene) spots(app, label string) map[string]int {
	s.t.Helper()
	pods, err := s.client.CoreV1().Pods("default").List(s.t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		s.t.Fatal(err)
	}
	nodes := s.nodes()
	out := map[string]int{}
	for _, p := range pods.Items {
		if i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == p.Spec.NodeName }); i >= 0 {
			out[nodes[i].Labels[label]]++
		}
	}
	return out
}
