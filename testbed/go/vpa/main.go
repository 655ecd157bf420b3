// Command vpa says what the upstream Vertical Pod Autoscaler makes of samples.
//
// It reads one JSON object per line, a series, and writes one JSON object per line, what upstream would recommend for it
// and the checkpoint it would write, so that the tests of the Rust crate can compare themselves with the Go library
// instead of with memory.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	vpa_types "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/config"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
)

// A container whose name all others take a share of the floor with.
const subject = "subject"

// settings are those of upstream's flags that change a number; what is absent keeps upstream's default.
type settings struct {
	Margin           *float64 `json:"margin"`
	PodMinCPUMilli   *float64 `json:"podMinCpuMilli"`
	PodMinMemoryMiB  *float64 `json:"podMinMemoryMib"`
	Target           *float64 `json:"target"`
	Lower            *float64 `json:"lower"`
	Upper            *float64 `json:"upper"`
	ConfidenceHours  *float64 `json:"confidenceHours"`
	CPUHalfLifeHours *float64 `json:"cpuHalfLifeHours"`
	MemHalfLifeHours *float64 `json:"memoryHalfLifeHours"`
	IntervalHours    *float64 `json:"memoryIntervalHours"`
	OOMRatio         *float64 `json:"oomRatio"`
	OOMMinBytes      *float64 `json:"oomMinBytes"`
}

// event is one reading of one container instance: usage, or an end by lack of memory with the request it had.
type event struct {
	Instance int    `json:"instance"`
	Second   int64  `json:"second"`
	CPUMilli *int64 `json:"cpu"`
	Memory   *int64 `json:"memory"`
	OOM      *int64 `json:"oom"`
}

type series struct {
	Name string `json:"name"`
	// Start is what seconds count from.
	Start time.Time `json:"start"`
	// Now is the second at which the checkpoint is written: memory peaks of windows still open then are left out of it.
	Now        int64                                            `json:"now"`
	Containers int                                              `json:"containers"`
	Settings   settings                                         `json:"settings"`
	Checkpoint *vpa_types.VerticalPodAutoscalerCheckpointStatus `json:"checkpoint"`
	Events     []event                                          `json:"events"`
}

type bounds struct {
	Lower  int64 `json:"lower"`
	Target int64 `json:"target"`
	Upper  int64 `json:"upper"`
}

type amounts struct {
	CPU    bounds `json:"cpu"`
	Memory bounds `json:"memory"`
}

type percentiles struct {
	CPU    [3]float64 `json:"cpu"`
	Memory [3]float64 `json:"memory"`
}

type verdict struct {
	Name        string                                           `json:"name"`
	Bare        amounts                                          `json:"bare"`
	Floored     amounts                                          `json:"floored"`
	Percentiles percentiles                                      `json:"percentiles"`
	Checkpoint  *vpa_types.VerticalPodAutoscalerCheckpointStatus `json:"checkpoint"`
}

func judge(in series) (verdict, error) {
	cfg := config.DefaultRecommenderConfig()
	apply(in.Settings, cfg)
	model.InitializeAggregationsConfig(model.NewAggregationsConfig(
		cfg.MemoryAggregationInterval, cfg.MemoryAggregationIntervalCount, cfg.MemoryHistogramDecayHalfLife,
		cfg.CpuHistogramDecayHalfLife, cfg.OOMBumpUpRatio, cfg.OOMMinBumpUp))

	live := model.NewAggregateContainerState()
	instances := map[int]*model.ContainerState{}
	for _, event := range in.Events {
		instance, known := instances[event.Instance]
		if !known {
			instance = model.NewContainerState(model.Resources{}, live)
			instances[event.Instance] = instance
		}
		feed(instance, event, in.Start.Add(time.Duration(event.Second)*time.Second))
	}

	// The recommender keeps what it loaded apart from what it saw, and joins the two whenever it is asked.
	joined := func() (*model.AggregateContainerState, error) {
		all := model.NewAggregateContainerState()
		all.MergeContainerState(live)
		if in.Checkpoint != nil {
			loaded := model.NewAggregateContainerState()
			if err := loaded.LoadFromCheckpoint(in.Checkpoint); err != nil {
				return nil, err
			}
			all.MergeContainerState(loaded)
		}
		return all, nil
	}

	state, err := joined()
	if err != nil {
		return verdict{}, err
	}
	answer := verdict{
		Name:    in.Name,
		Floored: recommend(cfg, in.Containers, state),
		Percentiles: percentiles{
			CPU: [3]float64{state.AggregateCPUUsage.Percentile(cfg.LowerBoundCPUPercentile),
				state.AggregateCPUUsage.Percentile(cfg.TargetCPUPercentile), state.AggregateCPUUsage.Percentile(cfg.UpperBoundCPUPercentile)},
			Memory: [3]float64{state.AggregateMemoryPeaks.Percentile(cfg.LowerBoundMemoryPercentile),
				state.AggregateMemoryPeaks.Percentile(cfg.TargetMemoryPercentile), state.AggregateMemoryPeaks.Percentile(cfg.UpperBoundMemoryPercentile)},
		},
	}
	cfg.PodMinCPUMillicores, cfg.PodMinMemoryMb = 0, 0
	answer.Bare = recommend(cfg, in.Containers, state)

	saved, err := joined()
	if err != nil {
		return verdict{}, err
	}
	now := in.Start.Add(time.Duration(in.Now) * time.Second)
	for _, instance := range instances {
		if now.Before(instance.WindowEnd) {
			saved.AggregateMemoryPeaks.SubtractSample(model.BytesFromMemoryAmount(instance.GetMaxMemoryPeak()), 1.0, instance.WindowEnd)
		}
	}
	answer.Checkpoint, err = saved.SaveToCheckpoint()
	return answer, err
}

func feed(instance *model.ContainerState, event event, at time.Time) {
	if event.CPUMilli != nil {
		instance.AddSample(&model.ContainerUsageSample{MeasureStart: at, Usage: model.ResourceAmount(*event.CPUMilli), Resource: model.ResourceCPU})
	}
	if event.Memory != nil {
		instance.AddSample(&model.ContainerUsageSample{MeasureStart: at, Usage: model.ResourceAmount(*event.Memory), Resource: model.ResourceMemory})
	}
	if event.OOM != nil {
		// One that is too old is dropped; that is a result, not a failure.
		_ = instance.RecordOOM(at, model.ResourceAmount(*event.OOM))
	}
}

func recommend(cfg *config.RecommenderConfig, containers int, state *model.AggregateContainerState) amounts {
	states := model.ContainerNameToAggregateStateMap{subject: state}
	for i := 1; i < containers; i++ {
		states[fmt.Sprintf("other-%d", i)] = model.NewAggregateContainerState()
	}
	got := logic.CreatePodResourceRecommender(logic.RecommendationConfig{
		SafetyMarginFraction:       cfg.SafetyMarginFraction,
		PodMinCPUMillicores:        cfg.PodMinCPUMillicores,
		PodMinMemoryMb:             cfg.PodMinMemoryMb,
		TargetCPUPercentile:        cfg.TargetCPUPercentile,
		LowerBoundCPUPercentile:    cfg.LowerBoundCPUPercentile,
		UpperBoundCPUPercentile:    cfg.UpperBoundCPUPercentile,
		ConfidenceIntervalCPU:      cfg.ConfidenceIntervalCPU,
		TargetMemoryPercentile:     cfg.TargetMemoryPercentile,
		LowerBoundMemoryPercentile: cfg.LowerBoundMemoryPercentile,
		UpperBoundMemoryPercentile: cfg.UpperBoundMemoryPercentile,
		ConfidenceIntervalMemory:   cfg.ConfidenceIntervalMemory,
	}).GetRecommendedPodResources(states)[subject]
	of := func(name model.ResourceName) bounds {
		return bounds{Lower: int64(got.LowerBound[name]), Target: int64(got.Target[name]), Upper: int64(got.UpperBound[name])}
	}
	return amounts{CPU: of(model.ResourceCPU), Memory: of(model.ResourceMemory)}
}

func apply(from settings, to *config.RecommenderConfig) {
	number := func(from *float64, to ...*float64) {
		for _, field := range to {
			if from != nil {
				*field = *from
			}
		}
	}
	hours := func(from *float64, to ...*time.Duration) {
		for _, field := range to {
			if from != nil {
				*field = time.Duration(*from * float64(time.Hour))
			}
		}
	}
	number(from.Margin, &to.SafetyMarginFraction)
	number(from.PodMinCPUMilli, &to.PodMinCPUMillicores)
	number(from.PodMinMemoryMiB, &to.PodMinMemoryMb)
	number(from.Target, &to.TargetCPUPercentile, &to.TargetMemoryPercentile)
	number(from.Lower, &to.LowerBoundCPUPercentile, &to.LowerBoundMemoryPercentile)
	number(from.Upper, &to.UpperBoundCPUPercentile, &to.UpperBoundMemoryPercentile)
	hours(from.ConfidenceHours, &to.ConfidenceIntervalCPU, &to.ConfidenceIntervalMemory)
	hours(from.CPUHalfLifeHours, &to.CpuHistogramDecayHalfLife)
	hours(from.MemHalfLifeHours, &to.MemoryHistogramDecayHalfLife)
	hours(from.IntervalHours, &to.MemoryAggregationInterval)
	number(from.OOMRatio, &to.OOMBumpUpRatio)
	number(from.OOMMinBytes, &to.OOMMinBumpUp)
}

func run() error {
	in := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20))
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	for in.More() {
		var next series
		if err := in.Decode(&next); err != nil {
			return fmt.Errorf("not a series: %w", err)
		}
		answer, err := judge(next)
		if err != nil {
			return fmt.Errorf("series %q: %w", next.Name, err)
		}
		if err := encoder.Encode(answer); err != nil {
			return err
		}
	}
	return out.Flush()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "vpa:", err)
		os.Exit(1)
	}
}
