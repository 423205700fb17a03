#include "compute/cpu/kept_array.h"

namespace holdfast::compute {

KeptArray::KeptArray(CpuContext& context, const std::string& operation, const MemoryDesc& from, const MemoryDesc& to)
    : floats_((to.get_size() + sizeof(float) - 1) / sizeof(float)) {
  with_named_errors(operation, [&] {
    const dnnl::reorder::primitive_desc desc(context.engine(), from, context.engine(), to, scratch_attributes());
    copy_ = Primitive::make<dnnl::reorder>(context, operation, desc,
                                           {{DNNL_ARG_FROM, from, from}, {DNNL_ARG_TO, to, to, Operand::Role::output}});
  });
  context.count_kept(floats_ * sizeof(float));
}

void KeptArray::set(const float* array) {
  memory_.grow_to(floats_);
  copy_->run({{DNNL_ARG_FROM, array}, {DNNL_ARG_TO, data()}});
}

}  // namespace holdfast::compute
