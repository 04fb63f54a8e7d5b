// What each CEL rule of CRDs may cost, as an API server estimates it before it takes the CRD: `cel-cost FILE…` prints a line
// of JSON for each rule and each messageExpression, then one for the CRD's total.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"os"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

type line struct {
	CRD   string `json:"crd"`
	Path  string `json:"path"`
	Rule  string `json:"rule"`
	Cost  uint64 `json:"cost"`
	Limit uint64 `json:"limit"`
}

var (
	out         = json.NewEncoder(os.Stdout)
	expressions = environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion(), true)
)

func main() {
	for _, path := range os.Args[1:] {
		if err := estimate(path); err != nil {
			fmt.Fprintf(os.Stderr, "cel-cost: %s: %v\n", path, err)
			os.Exit(1)
		}
	}
}

func estimate(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var crd v1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		return err
	}
	for _, version := range crd.Spec.Versions {
		var schema apiextensions.JSONSchemaProps
		if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &schema, nil); err != nil {
			return err
		}
		context := validation.RootCELContext(&schema)
		if err := walk(crd.Name, version.Name, &schema, context); err != nil {
			return err
		}
		print(line{crd.Name, version.Name, "", context.TotalCost.Total, validation.StaticEstimatedCRDCostLimit})
	}
	return nil
}

// walk goes where ValidateCustomResourceDefinitionOpenAPISchema goes with a context: nobody else can call that function,
// whose options are its package's own.
func walk(crd, path string, schema *apiextensions.JSONSchemaProps, context *validation.CELSchemaContext) error {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		child := schema.Properties[name]
		if err := walk(crd, path+"."+name, &child, context.ChildPropertyContext(&child, name)); err != nil {
			return err
		}
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		child := schema.AdditionalProperties.Schema
		if err := walk(crd, path+".*", child, context.ChildAdditionalPropertiesContext(child)); err != nil {
			return err
		}
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		child := schema.Items.Schema
		if err := walk(crd, path+"[]", child, context.ChildItemsContext(child)); err != nil {
			return err
		}
	}
	if len(schema.XValidations) == 0 {
		return nil
	}
	info, err := context.TypeInfo()
	if err != nil {
		return err
	}
	compiled, err := cel.Compile(info.Schema, info.DeclType, celconfig.PerCallLimit, expressions, cel.NewExpressionsEnvLoader())
	if err != nil {
		return err
	}
	for i, result := range compiled {
		rule := schema.XValidations[i]
		if result.Error != nil {
			return fmt.Errorf("%s: %s", rule.Rule, result.Error.Detail)
		}
		times := result.MaxCardinality
		if context.MaxCardinality != nil {
			times = *context.MaxCardinality
		}
		observe(context, line{crd, path, rule.Rule, product(result.MaxCost, times), validation.StaticEstimatedCostLimit})
		if result.MessageExpression != nil {
			cost := result.MessageExpressionMaxCost
			observe(context, line{crd, path, rule.MessageExpression, cost, validation.StaticEstimatedCostLimit})
		}
	}
	return nil
}

func observe(context *validation.CELSchemaContext, found line) {
	context.TotalCost.ObserveExpressionCost(nil, found.Cost)
	print(found)
}

func print(found line) {
	if err := out.Encode(found); err != nil {
		panic(err)
	}
}

func product(cost, times uint64) uint64 {
	high, low := bits.Mul64(cost, times)
	if high != 0 {
		return math.MaxUint64
	}
	return low
}
