/* The instructions that the compiler was allowed and that this library uses, for `nmt doctor`. */
EXPORT const char *nmt_instructions(void) {
  return
#if defined(__AVX512F__)
      "AVX-512"
#elif defined(__AVX2__)
      "AVX2"
#else
      "NEON"
#endif
#ifdef QUANTIZED_MAX /* it translates */
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
      ", VNNI"
#endif
#ifdef __ARM_FEATURE_DOTPROD
      ", dot products"
#endif
#ifdef __AMX_INT8__
      ", AMX"
#endif
#elif defined(ACTIVATIONS_IN_BF16)
#if defined(__AVX512BF16__) || defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
      ", bf16"
#endif
#ifdef __AMX_BF16__
      ", AMX"
#endif
#endif
      ;
}
