package admission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// policies are the manifests of one file.
type policies []*policy

// policy is one ValidatingAdmissionPolicy with its bindings, compiled as the plugin of the
// API server compiles it (k8s.io/apiserver/pkg/admission/plugin/policy/validating,
// compilePolicy).
type policy struct {
	admissionv1.ValidatingAdmissionPolicy
	bindings  []admissionv1.ValidatingAdmissionPolicyBinding
	validator validating.Validator
	matcher   matchconditions.Matcher
	cost      cel.ConditionEvaluator // the validations once more, for what they leave of the budget
}

func load(file string) (policies, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the manifests: %w", err)
	}
	byName := map[string]*policy{}
	var set policies
	var bindings []admissionv1.ValidatingAdmissionPolicyBinding
	for _, doc := range strings.Split(string(data), "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(doc), &kind); err != nil {
			return nil, fmt.Errorf("read the manifests: %w", err)
		}
		switch kind.Kind {
		case "ValidatingAdmissionPolicy":
			p := &policy{}
			if err := yaml.UnmarshalStrict([]byte(doc), &p.ValidatingAdmissionPolicy); err != nil {
				return nil, fmt.Errorf("read a policy: %w", err)
			}
			byName[p.Name], set = p, append(set, p)
		case "ValidatingAdmissionPolicyBinding":
			var b admissionv1.ValidatingAdmissionPolicyBinding
			if err := yaml.UnmarshalStrict([]byte(doc), &b); err != nil {
				return nil, fmt.Errorf("read a binding: %w", err)
			}
			bindings = append(bindings, b)
		}
	}
	for _, b := range bindings {
		p := byName[b.Spec.PolicyName]
		if p == nil {
			return nil, fmt.Errorf("binding %s: there is no policy %q", b.Name, b.Spec.PolicyName)
		}
		p.bindings = append(p.bindings, b)
	}
	return set, nil
}

// accepted compiles every expression as the API server does before it takes a new policy:
// with the language of the version that it has to be compatible with, the one before it.
func (set policies) accepted(compatible string) error {
	v, err := version.ParseMajorMinor(compatible)
	if err != nil {
		return err
	}
	var wrong []error
	for _, p := range set {
		check := func(what string, r cel.CompilationResult) {
			if r.Error != nil {
				wrong = append(wrong, fmt.Errorf("%s: %s: %s", p.Name, what, r.Error.Detail))
			}
		}
		c, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(v))
		if err != nil {
			return err
		}
		vars := cel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
		for _, x := range p.Spec.Variables {
			check("variable "+x.Name, c.CompileAndStoreVariable(&validating.Variable{Name: x.Name, Expression: x.Expression}, vars, environment.NewExpressions))
		}
		for _, x := range p.Spec.MatchConditions {
			check("matchCondition "+x.Name, c.CompileCELExpression((*matchconditions.MatchCondition)(&x), vars, environment.NewExpressions))
		}
		for i, x := range p.Spec.Validations {
			check(fmt.Sprintf("validations[%d]", i), c.CompileCELExpression(&validating.ValidationCondition{Expression: x.Expression}, vars, environment.NewExpressions))
			if x.MessageExpression != "" {
				check(fmt.Sprintf("validations[%d].messageExpression", i), c.CompileCELExpression(&validating.MessageExpressionCondition{MessageExpression: x.MessageExpression},
					cel.OptionalVariableDeclarations{HasParams: vars.HasParams}, environment.NewExpressions))
			}
		}
	}
	return errors.Join(wrong...)
}

func (set policies) compile() error {
	for _, p := range set {
		c, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
		if err != nil {
			return err
		}
		vars := cel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
		var variables []cel.NamedExpressionAccessor
		for _, x := range p.Spec.Variables {
			variables = append(variables, &validating.Variable{Name: x.Name, Expression: x.Expression})
		}
		c.CompileAndStoreVariables(variables, vars, environment.StoredExpressions)
		var conditions, validations, messages []cel.ExpressionAccessor
		for i := range p.Spec.MatchConditions {
			conditions = append(conditions, (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i]))
		}
		messages = make([]cel.ExpressionAccessor, len(p.Spec.Validations))
		for i, x := range p.Spec.Validations {
			validations = append(validations, &validating.ValidationCondition{Expression: x.Expression, Message: x.Message, Reason: x.Reason})
			if x.MessageExpression != "" {
				messages[i] = &validating.MessageExpressionCondition{MessageExpression: x.MessageExpression}
			}
		}
		if len(conditions) > 0 {
			p.matcher = matchconditions.NewMatcher(c.CompileCondition(conditions, vars, environment.StoredExpressions), p.Spec.FailurePolicy, "policy", "validate", p.Name)
		}
		p.cost = c.CompileCondition(validations, vars, environment.StoredExpressions)
		if err := errors.Join(p.cost.CompilationErrors()...); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		p.validator = validating.NewValidator(p.cost, p.matcher, c.CompileCondition(nil, vars, environment.StoredExpressions),
			c.CompileCondition(messages, cel.OptionalVariableDeclarations{HasParams: vars.HasParams}, environment.StoredExpressions), p.Spec.FailurePolicy, nil)
	}
	return nil
}

// judge asks every policy that speaks of the request, once for each parameter.
func (set policies) judge(ctx context.Context, r *Request, authz authorizer.Authorizer) (Answer, error) {
	answer := Answer{Cost: map[string]int64{}}
	at, gvr := r.attributes()
	for _, p := range set {
		if !p.matches(r) || r.First && len(answer.Denials) > 0 {
			continue
		}
		for _, b := range p.bindings {
			params, err := p.params(b, r.Params)
			if err != nil {
				answer.Denials = append(answer.Denials, Denial{p.Name, err.Error()})
			}
			for _, param := range params {
				for _, d := range p.validator.Validate(ctx, gvr, at, param, nil, celconfig.RuntimeCELCostBudget, authz).Decisions {
					if d.Action == validating.ActionDeny {
						answer.Denials = append(answer.Denials, Denial{p.Name, d.Message})
					}
				}
				if !r.Costs || p.matcher != nil && !p.matcher.Match(ctx, at, param, authz).Matches {
					continue
				}
				_, left, err := p.cost.ForInput(ctx, at, cel.CreateAdmissionRequest(at, metav1.GroupVersionResource(gvr), metav1.GroupVersionKind(at.VersionedKind)),
					cel.OptionalVariableBindings{VersionedParams: param, Authorizer: authz}, nil, celconfig.RuntimeCELCostBudget)
				if err == nil {
					answer.Cost[p.Name] = max(answer.Cost[p.Name], celconfig.RuntimeCELCostBudget-left)
				}
			}
		}
	}
	return answer, nil
}

func (r *Request) attributes() (*admission.VersionedAttributes, schema.GroupVersionResource) {
	gvr := schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
	var object, old runtime.Object
	var gvk schema.GroupVersionKind
	if r.OldObject != nil {
		old, gvk = r.OldObject, r.OldObject.GroupVersionKind()
	}
	if r.Object != nil {
		object, gvk = r.Object, r.Object.GroupVersionKind()
	}
	at := admission.NewAttributesRecord(object, old, gvk, r.Namespace, r.Name, gvr, r.Subresource, admission.Operation(r.Operation), nil, false, &user.DefaultInfo{Name: r.User})
	return &admission.VersionedAttributes{Attributes: at, VersionedObject: object, VersionedOldObject: old, VersionedKind: gvk}, gvr
}

func (p *policy) matches(r *Request) bool {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return slices.ContainsFunc(p.Spec.MatchConstraints.ResourceRules, func(rule admissionv1.NamedRuleWithOperations) bool {
		return slices.Contains(rule.APIGroups, r.Group) && slices.Contains(rule.Operations, admissionv1.OperationType(r.Operation)) &&
			(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.Name)) &&
			(slices.Contains(rule.Resources, resource) || r.Subresource != "" && slices.Contains(rule.Resources, r.Resource+"/*"))
	})
}

// params are the parameters that a binding chooses; a policy without any has nil as its one.
func (p *policy) params(b admissionv1.ValidatingAdmissionPolicyBinding, all []*unstructured.Unstructured) ([]runtime.Object, error) {
	if p.Spec.ParamKind == nil {
		return []runtime.Object{nil}, nil
	}
	ref := b.Spec.ParamRef
	selector := labels.Nothing()
	if ref.Selector != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(ref.Selector); err != nil {
			return nil, err
		}
	}
	var out []runtime.Object
	for _, o := range all {
		if o.GetKind() == p.Spec.ParamKind.Kind && o.GetNamespace() == ref.Namespace && (ref.Name == o.GetName() || selector.Matches(labels.Set(o.GetLabels()))) {
			out = append(out, o)
		}
	}
	if len(out) == 0 && *ref.ParameterNotFoundAction == admissionv1.DenyAction {
		return nil, fmt.Errorf("no params found for policy binding with `Deny` parameterNotFoundAction")
	}
	return out, nil
}
