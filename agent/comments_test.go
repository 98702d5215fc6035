package agent

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// identifier is a word that has the form of a name in code: a capital inside of it.
var identifier = regexp.MustCompile(`\b[A-Za-z][a-z0-9]*[A-Z][A-Za-z0-9]*\b`)

// humps tells a name from a word of capitals, as JSON or APIs.
var humps = regexp.MustCompile(`^([a-z][a-z0-9]*[A-Z]|[A-Z][a-z0-9]+[A-Z])`)

// foreign are names in comments that no code of ours uses, by whose they are.
var foreign = map[string]string{
	"kube-scheduler": `LeastAllocated BalancedAllocation NodeResourcesBalancedAllocation ImageLocality NodeDeclaredFeatures countPodsMatchSelector calPreFilterState satisfyPodAffinity FindPodVolumes filterTopologySpreadConstraints mergeAffinityTermNamespacesIfNotEmpty AffinityTerm GetAffinityTerms resourceAllocationScorer calculatePodResourceRequest CalculateResource DefaultMilliCPURequest DefaultMemoryRequest getDefaultPlugins topologyNormalizingWeight percentageOfNodesToScore hardPodAffinityWeight defaultingType isCSIMigrationOn getVolumeLimits getNodeVolumeAttachmentInfo hasEnoughCapacity getTopologyValues DynamicResources`,
	"Kubernetes' controllers, kubelet and libraries": `AddOrUpdateDaemonPodTolerations IsPodUpdated RequiredNodeAffinity ToleratesTaint CheckNodeAffinity FindMatchingVolume LabelZonesToSet LabelMultiZoneDelimiter translateTopologyFromInTreeToCSI applyMatchLabelKeysAndMismatchLabelKeys IsScalarResourceName parsePercentage GetThresholdQuantity MergeTolerations isSuperset defaultHostNetworkPorts defaultPodRequests ValidateKubeletClientCSR KubeletLabels kubeletLabelNamespaces ReflectorStore TransformingStore GatherPools`,
	"admission plug-ins of the API server":           `LimitRanger PodNodeSelector PodTolerationRestriction ExtendedResourceToleration DefaultTolerationSeconds`,
	"fields and words of Kubernetes' API":            `schedulingGates disruptionsAllowed nodeSelectorTerm matchExpressions matchExpression matchField ownerReference mismatchLabelKeys topologySpreadConstraint declaredFeatures envFrom resizePolicy volumeMounts workingDir volumeDevices securityContext configMap downwardAPI allocatedResources managedFields dnsConfig ephemeralContainers hostAliases imagePullSecrets qosClass volumeName VolumeAttributesClass WaitForFirstConsumer IfNotPresent expirationSeconds AllocationResultsMaxSize ResourceSliceMaxDevices DeviceTaintRules`,
	"Cluster Autoscaler":                             `PodLongTerminatingExtraThreshold UnremovableReason IncreaseSize DeleteNodes`,
	"Kueue and Cluster Autoscaler":                   `ProvisioningRequests`,
	"Cluster API":                                    `MachineSets ClusterClass`,
	"systemd":                                        `MemoryHigh WatchdogSec RestartPreventExitStatus StateDirectory ProcSubset`,
	"X.509 and PKCS #10":                             `CertificationRequest CertificationRequestInfo SubjectPublicKeyInfo`,
	"names and units of the world":                   `OpenAPI EventBridge PyYAML kOps macOS kB`,
}

// TestCommentsNameWhatExists: a name in a comment is one of the code's own, of a library that
// some code of ours calls, or stands in a text or tag of it. What is renamed or gone is found,
// and so is a package comment that names another package.
func TestCommentsNameWhatExists(t *testing.T) {
	known := names(t)
	unused := map[string]bool{}
	for _, words := range foreign {
		for word := range strings.FieldsSeq(words) {
			unused[word] = true
		}
	}
	abroad := maps.Clone(unused)
	for _, s := range sources(t) {
		if doc := s.ast.Doc.Text(); strings.HasPrefix(doc, "Package ") && strings.Fields(doc)[1] != s.ast.Name.Name {
			t.Errorf("%s: the comment of package %s begins with %q", s.file, s.ast.Name.Name, strings.Join(strings.Fields(doc)[:2], " "))
		}
		if ast.IsGenerated(s.ast) {
			continue
		}
		for _, group := range s.ast.Comments {
			for _, c := range group.List {
				for _, word := range identifier.FindAllString(c.Text, -1) {
					delete(unused, word)
					if humps.MatchString(word) && !known[word] && !abroad[word] {
						t.Errorf("%s: a comment names %s, which is nowhere in the code: name what takes its place, or put it into foreign with whose it is", s.fset.Position(c.Pos()), word)
					}
				}
			}
		}
	}
	for word := range unused {
		t.Errorf("no comment names %s any more: take it out of foreign", word)
	}
}

// names are the identifiers of all Go code of the repository, and the words of its texts and
// tags, where the names of APIs stand.
func names(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || d.Name() == "comments_test.go" {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				out[n.Name] = true
			case *ast.BasicLit:
				for _, word := range identifier.FindAllString(n.Value, -1) {
					out[word] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
